// Copies of up to a cell's payload: exactly the bytes asked for.
#include "backends/shm/copy_few.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace medley::shm {
namespace {

TEST(CopyFew, CopiesEveryLengthAndNothingBeside) {
  std::array<std::byte, 66> from{};
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i + 1);
  for (std::size_t bytes = 0; bytes <= 64; ++bytes) {
    std::array<std::byte, 66> to{};
    copy_few(&to[1], &from[1], bytes);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const bool copied = i >= 1 && i <= bytes;
      EXPECT_EQ(to[i], copied ? from[i] : std::byte{}) << bytes << " bytes, byte " << i;
    }
  }
}

}  // namespace
}  // namespace medley::shm

// Segments cover a slice without gaps, and the first one's length tells slices with other numbers of segments apart.
#include "algorithms/counted_segments.hpp"

#include <gtest/gtest.h>

#include <map>

namespace medley::algorithms {
namespace {

TEST(CountedSegments, CoverTheSliceWithoutGaps) {
  for (const std::size_t element : {1u, 2u, 4u, 8u}) {
    const auto most = static_cast<std::int64_t>(segment_bytes / element);
    for (std::int64_t count : {std::int64_t{0}, std::int64_t{1}, most - 1, most, most + 1, 2 * most - 16, 2 * most - 15,
                               2 * most, 100 * most + 7, 3'000 * most, 70'000 * most + 1}) {
      const CountedSegments segments(count, element);
      std::int64_t at = 0;
      for (int i = 0; i < segments.number(); ++i) {
        ASSERT_EQ(segments.at(i), at) << count;
        ASSERT_GE(segments.count(i), 0) << count;
        ASSERT_LE(segments.count(i), segments.longest()) << count;
        at += segments.count(i);
      }
      EXPECT_EQ(at, count);
      EXPECT_EQ(segments.at(0) % 16, 0);
    }
  }
}

TEST(CountedSegments, OfAnotherNumberBeginWithAnotherLength) {
  constexpr std::size_t element = 4;
  constexpr std::int64_t most = segment_bytes / element;
  std::map<std::int64_t, int> number_of;  // by the length of the first
  for (std::int64_t count = most; count < 500 * most; count += most / 3) {
    const CountedSegments segments(count, element);
    const auto [at, added] = number_of.try_emplace(segments.count(0), segments.number());
    EXPECT_EQ(at->second, segments.number()) << count;
  }
  EXPECT_GT(number_of.size(), 490u);
}

}  // namespace
}  // namespace medley::algorithms

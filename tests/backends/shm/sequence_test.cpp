// Exchange numbers have 32 bits, which a job of small operations exhausts in minutes.
#include <gtest/gtest.h>

#include "backends/shm/exchange.hpp"

namespace medley::shm {
namespace {

TEST(Sequence, is_reached_by_ranks_that_are_there_or_a_little_further) {
  for (std::uint32_t wanted : {0u, 1u, 4711u, 0x7fffffffu, 0xfffffffeu}) {
    EXPECT_TRUE(at_least(wanted, wanted));
    EXPECT_TRUE(at_least(wanted + depth, wanted));
    EXPECT_FALSE(at_least(wanted - 1, wanted));
    EXPECT_FALSE(at_least(wanted - depth, wanted));
  }
}

TEST(Sequence, is_not_reached_by_a_word_that_is_more_than_two_billion_exchanges_old) {
  for (std::uint32_t old : {1u, 100u, 0xffffff00u}) {
    EXPECT_FALSE(at_least(old, old + 0x80000001u));
    EXPECT_FALSE(at_least(old, old + 0xf0000000u));
  }
}

}  // namespace
}  // namespace medley::shm

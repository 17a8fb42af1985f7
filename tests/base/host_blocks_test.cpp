// Which placements of ranks hierarchical collectives can use.
#include "base/host_blocks.hpp"

#include <gtest/gtest.h>

namespace medley::core {
namespace {

int block(std::vector<int> host_of_each) { return ranks_per_block(host_of_each); }

TEST(HostBlocks, EqualBlocksOfSeveralHostsHaveASize) {
  EXPECT_EQ(block({0, 0, 1, 1}), 2);
  EXPECT_EQ(block({5, 5, 5, 2, 2, 2, 9, 9, 9}), 3);
  EXPECT_TRUE(in_equal_blocks(std::vector<int>{0, 0, 1, 1}));
}

TEST(HostBlocks, OtherPlacementsHaveNone) {
  EXPECT_EQ(block({}), 0);
  EXPECT_EQ(block({0, 0}), 0);     // one host
  EXPECT_EQ(block({0, 1}), 0);     // one rank on each
  EXPECT_EQ(block({0, 0, 1}), 0);  // unequal
  EXPECT_EQ(block({0, 0, 0, 1, 1}), 0);
  EXPECT_EQ(block({0, 1, 0, 1}), 0);  // interleaved
  EXPECT_EQ(block({0, 0, 0, 0, 1, 1}), 0);
  EXPECT_EQ(block({0, 0, 1, 1, 1, 1}), 0);
}

}  // namespace
}  // namespace medley::core

#include "tune/sizes.hpp"

#include <gtest/gtest.h>

namespace medley::tune {

using Sizes = std::vector<std::size_t>;

TEST(Sizes, LadderHasBothEnds) {
  EXPECT_EQ(size_ladder(4, 64), (Sizes{4, 16, 64}));
  EXPECT_EQ(size_ladder(4, 100), (Sizes{4, 16, 64, 100}));
  EXPECT_EQ(size_ladder(8, 8), (Sizes{8}));
  EXPECT_EQ(size_ladder(0, 16), (Sizes{0, 4, 16}));
  EXPECT_EQ(size_ladder(4, 64 << 20).size(), 13u);
}

TEST(Sizes, PartsAreEqual) {
  EXPECT_EQ(elements_of(Op::all_reduce, 4, 4, 8), 1u);
  EXPECT_EQ(elements_of(Op::all_gather, 4, 4, 8), 8u);
  EXPECT_EQ(elements_of(Op::reduce_scatter, 40, 4, 3), 12u);
  EXPECT_EQ(elements_of(Op::all_to_all, 64, 4, 4), 16u);
  EXPECT_EQ(elements_of(Op::broadcast, 1, 4, 4), 1u);
  EXPECT_EQ(elements_of(Op::barrier, 64, 4, 4), 0u);
}

TEST(Sizes, BusBandwidthCountsAsNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Op::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Op::broadcast, 4), 1);
}

}  // namespace medley::tune

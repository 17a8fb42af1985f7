// What the tuner charges a library for the operations of others around it.
#include "tune/measure_mixing.hpp"

#include <gtest/gtest.h>

namespace medley::tune {
namespace {

TEST(Mixing, CostsNothingUnlessItSurelyCostsSomething) {
  const std::vector<double> apart(16, 100);
  std::vector<double> alternating;
  for (int i = 0; i < 16; ++i) alternating.push_back(i % 2 == 0 ? 130 : 80);
  EXPECT_EQ(added_by_mixing_us(alternating, apart, 4), 0);
  for (double& us : alternating) us += 100;
  EXPECT_NEAR(added_by_mixing_us(alternating, apart, 4), 105 / 4.0, 10);
  EXPECT_EQ(added_by_mixing_us({}, {}, 4), 0);
}

}  // namespace
}  // namespace medley::tune

#include "tune/statistics.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace medley::tune {

TEST(Statistics, MedianOfOddAndEvenSamples) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({7}), 7);
}

TEST(Statistics, DeviationIgnoresOneWildValue) {
  EXPECT_DOUBLE_EQ(median_absolute_deviation({1, 2, 3, 4, 1e9}), 1);
  EXPECT_DOUBLE_EQ(median_absolute_deviation({5, 5, 5}), 0);
}

TEST(Statistics, QuantilesInterpolate) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const Summary summary = summarize(values);
  EXPECT_DOUBLE_EQ(summary.median, 50);
  EXPECT_DOUBLE_EQ(summary.mad, 25);
  EXPECT_DOUBLE_EQ(summary.p99, 99);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.99), 9.9);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 0);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 100);
}

TEST(Statistics, RefusesWhatHasNoAnswer) {
  EXPECT_THROW(median({}), std::invalid_argument);
  EXPECT_THROW(quantile({1}, 1.5), std::invalid_argument);
  EXPECT_THROW(quantile({1}, std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
  EXPECT_THROW(ratio_of_medians_interval({}, std::vector<double>{1}), std::invalid_argument);
}

TEST(Statistics, ConstantSamplesGiveAPointInterval) {
  const std::vector<double> six(9, 6), two(4, 2);
  const Interval interval = ratio_of_medians_interval(six, two);
  EXPECT_DOUBLE_EQ(interval.low, 3);
  EXPECT_DOUBLE_EQ(interval.high, 3);
}

TEST(Statistics, IntervalOfARatioCoversTheTruthAboutAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> slow(1.0, 0.2), fast(0.0, 0.2);  // true ratio of medians: e
  int covered = 0;
  constexpr int trials = 200;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> a(40), b(40);
    for (double& value : a) value = slow(random);
    for (double& value : b) value = fast(random);
    const Interval interval = ratio_of_medians_interval(a, b, 400);
    ASSERT_LT(interval.low, interval.high);
    covered += interval.low <= std::exp(1.0) && std::exp(1.0) <= interval.high;
  }
  EXPECT_GE(covered, trials * 88 / 100);
  EXPECT_LT(covered, trials);  // an interval that never misses would be too wide to be useful
}

}  // namespace medley::tune

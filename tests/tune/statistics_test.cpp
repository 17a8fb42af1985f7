#include "tune/cell_statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

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
}

TEST(Statistics, ConstantSamplesGiveAPointInterval) {
  const Interval interval = median_interval(std::vector<double>(9, 6));
  EXPECT_DOUBLE_EQ(interval.low, 6);
  EXPECT_DOUBLE_EQ(interval.high, 6);
}

TEST(Statistics, IntervalOfAMedianCoversTheTruthAboutAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> gain(1.0, 0.2);  // its median is e
  int covered = 0;
  constexpr int trials = 400;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> samples(40);
    for (double& value : samples) value = gain(random);
    const Interval interval = median_interval(samples);
    ASSERT_LT(interval.low, interval.high);
    covered += interval.low <= std::exp(1.0) && std::exp(1.0) <= interval.high;
  }
  EXPECT_GE(covered, trials * 93 / 100);
  EXPECT_LT(covered, trials);  // an interval that never misses would be too wide to be useful
}

}  // namespace medley::tune

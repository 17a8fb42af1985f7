// Robust statistics of timings: median, deviation, tail, and the confidence interval of a ratio of two medians.
// Used by `medley bench`, the tuner and the programs in bench/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace medley::tune {

/// The value below which the fraction `q` of the sample is, interpolated linearly.
inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) throw std::invalid_argument("quantile of no values");
  if (!(q >= 0 && q <= 1)) throw std::invalid_argument("a quantile lies between 0 and 1");
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(position);
  const auto nth = values.begin() + below;
  std::nth_element(values.begin(), nth, values.end());
  const double fraction = position - static_cast<double>(below);
  if (fraction == 0) return *nth;
  const double above = *std::min_element(nth + 1, values.end());
  return *nth + fraction * (above - *nth);
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Median absolute deviation from the median, unscaled (a normal distribution's sigma is 1.4826 of it).
inline double median_absolute_deviation(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values) value = std::abs(value - middle);
  return median(std::move(values));
}

struct Summary {
  double median, mad, p99;
};

inline Summary summarize(const std::vector<double>& values) {
  return {median(values), median_absolute_deviation(values), quantile(values, 0.99)};
}

struct Interval {
  double low, high;
};

/// 95 % interval of median(numerator) / median(denominator) by percentile bootstrap, resampling each sample
/// independently. The same input gives the same interval.
inline Interval ratio_of_medians_interval(std::span<const double> numerator, std::span<const double> denominator,
                                          int resamples = 2000) {
  if (numerator.empty() || denominator.empty()) throw std::invalid_argument("ratio of no values");
  if (resamples < 1) throw std::invalid_argument("a bootstrap needs at least one resample");
  std::mt19937_64 random(20240229);
  const auto resampled_median = [&](std::span<const double> values) {
    std::vector<double> drawn(values.size());
    for (double& value : drawn) value = values[random() % values.size()];
    return median(std::move(drawn));
  };
  std::vector<double> ratios(static_cast<std::size_t>(resamples));
  for (double& ratio : ratios) {
    const double top = resampled_median(numerator);
    ratio = top / resampled_median(denominator);
  }
  return {quantile(ratios, 0.025), quantile(ratios, 0.975)};
}

}  // namespace medley::tune

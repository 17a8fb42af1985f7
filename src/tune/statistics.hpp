// Robust statistics of timings: median, deviation and tail. Used by `medley bench`, the tuner and the programs in bench/.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

}  // namespace medley::tune

// Statistics of a cell: how far a median can be trusted, how sure it is which route is the fastest, and how repeated
// measurements combine. Used by races, the tuner and bench.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "route/table.hpp"
#include "tune/statistics.hpp"

namespace medley::tune {

/// 95 % interval of the median by order statistics: no assumption about how the noise is distributed.
inline Interval median_interval(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size()), reach = 0.98 * std::sqrt(n);
  const double low = std::max(0.0, std::floor((n - 1) / 2 - reach)),
               high = std::min(n - 1, std::ceil((n - 1) / 2 + reach));
  return {samples[static_cast<std::size_t>(low)], samples[static_cast<std::size_t>(high)]};
}

/// A route's samples as a table holds them.
inline route::Timing timing_of(const Choice& route, const std::vector<double>& us) {
  const double middle = std::max(median(us), 0.001);  // the smallest time a table can hold
  const Interval interval = median_interval(us);
  return {route, middle, std::min(interval.low, middle), std::max(interval.high, middle),
          static_cast<std::int64_t>(us.size())};
}

inline constexpr std::int64_t few_samples = 8;         ///< fewer cannot separate two intervals at 95 %
inline constexpr double far_behind_ratio = 3;          ///< this far behind, few samples are enough,
inline constexpr std::int64_t far_behind_samples = 5;  ///< but not two: both may have hit the same disturbance

/// The confidence that `first` is faster than `second`: 0.5 when they are equal, by the normal distribution of two
/// medians.
inline double confidence_of(const route::Timing& first, const route::Timing& second) {
  const std::int64_t samples = std::min(first.samples, second.samples);
  if (samples < 2) return 0.5;
  if (second.low_us > far_behind_ratio * first.high_us) return 1;
  // Few samples give no interval: they only exclude far_behind routes
  const double most = samples >= few_samples ? 1 : 0.9;
  const double spread = std::hypot(first.high_us - first.low_us, second.high_us - second.low_us) / (2 * 1.96);
  if (spread <= 0) return first.median_us < second.median_us ? most : 0.5;
  return std::min(most, 0.5 * std::erfc(-(second.median_us - first.median_us) / spread / std::sqrt(2.0)));
}

/// Sorts the routes and computes the confidence that the first is the fastest.
inline void rank_routes(route::Cell& cell) {
  std::stable_sort(cell.routes.begin(), cell.routes.end(),
                   [](const auto& a, const auto& b) { return a.median_us < b.median_us; });
  cell.confidence = 1;
  for (std::size_t i = 1; i < cell.routes.size(); ++i) {
    cell.confidence = std::min(cell.confidence, confidence_of(cell.routes[0], cell.routes[i]));
  }
}

/// Drift: how much slower one measurement of a cell was than another, from the routes that both measured.
inline double drift(const route::Cell& now, const route::Cell& before) {
  std::vector<double> ratios;
  for (const route::Timing& timing : now.routes) {
    if (const route::Timing* old = before.find(timing.route)) ratios.push_back(timing.median_us / old->median_us);
  }
  return ratios.empty() ? 1 : median(std::move(ratios));
}

/// Two measurements of one route, weighted by their samples. If they contradict each other the interval covers both.
inline route::Timing pooled(const route::Timing& a, const route::Timing& b) {
  const double share = static_cast<double>(a.samples) / static_cast<double>(a.samples + b.samples);
  const auto between = [&](double of_a, double of_b) {
    return std::exp(share * std::log(of_a) + (1 - share) * std::log(of_b));
  };
  const bool contradict = a.low_us > b.high_us || b.low_us > a.high_us;
  return {a.route, between(a.median_us, b.median_us),
          contradict ? std::min(a.low_us, b.low_us) : between(a.low_us, b.low_us),
          contradict ? std::max(a.high_us, b.high_us) : between(a.high_us, b.high_us), a.samples + b.samples};
}

/// A repeated measurement: earlier results are rescaled by the shared routes, to cancel drift, and pooled with the new
/// ones.
inline route::Cell merged(route::Cell cell, const route::Cell& before) {
  const double factor = drift(cell, before);
  for (route::Timing old : before.routes) {
    old.median_us *= factor, old.low_us *= factor, old.high_us *= factor;
    if (const route::Timing* same = cell.find(old.route)) {
      cell.routes[static_cast<std::size_t>(same - cell.routes.data())] = pooled(*same, old);
    } else {
      cell.routes.push_back(old);
    }
  }
  rank_routes(cell);
  return cell;
}

}  // namespace medley::tune

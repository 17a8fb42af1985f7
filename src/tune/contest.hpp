// Routes of one cell measured by turns, so that noise hits all alike, until it is clear which is fastest.
// Used by tune, and by bench without the early end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <medley/rules.hpp>
#include <numeric>
#include <utility>
#include <vector>

#include "route/choose.hpp"
#include "tune/sample_clock.hpp"
#include "tune/statistics.hpp"
#include "tune/turns.hpp"

namespace medley::tune {

/// 95 % interval of the median by order statistics: no assumption about how the noise is distributed.
inline Interval median_interval(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const double n = static_cast<double>(samples.size()), reach = 0.98 * std::sqrt(n);
  const double low = std::max(0.0, std::floor((n - 1) / 2 - reach)),
               high = std::min(n - 1, std::ceil((n - 1) / 2 + reach));
  return {samples[static_cast<std::size_t>(low)], samples[static_cast<std::size_t>(high)]};
}

inline constexpr std::int64_t few_samples = 8;  ///< fewer cannot part two intervals at 95 %
inline constexpr double hopeless_ratio = 3;     ///< so far behind, few samples are enough,
inline constexpr std::int64_t hopeless_samples = 5;   ///< but not two: both may have met the same disturbance

/// How sure it is that `first` is faster than `second`: 0.5 when they are equal, by the normal law of two
/// medians.
inline double confidence_of(const route::Timing& first, const route::Timing& second) {
  const std::int64_t samples = std::min(first.samples, second.samples);
  if (samples < 2) return 0.5;
  if (second.low_us > hopeless_ratio * first.high_us) return 1;
  const double most = samples >= few_samples ? 1 : 0.9;   // few samples are no interval: they tell only what is hopeless
  const double spread = std::hypot(first.high_us - first.low_us, second.high_us - second.low_us) / (2 * 1.96);
  if (spread <= 0) return first.median_us < second.median_us ? most : 0.5;
  return std::min(most, 0.5 * std::erfc(-(second.median_us - first.median_us) / spread / std::sqrt(2.0)));
}

/// Puts the routes in order and says how sure it is that the first is the fastest.
inline void judge(route::Cell& cell) {
  std::stable_sort(cell.routes.begin(), cell.routes.end(),
                   [](const auto& a, const auto& b) { return a.median_us < b.median_us; });
  cell.confidence = 1;
  for (std::size_t i = 1; i < cell.routes.size(); ++i) {
    cell.confidence = std::min(cell.confidence, confidence_of(cell.routes[0], cell.routes[i]));
  }
}

/// By how much everything took longer in one visit to a cell than in another: the routes that both measured tell.
inline double weather(const route::Cell& now, const route::Cell& before) {
  std::vector<double> ratios;
  for (const route::Timing& timing : now.routes) {
    if (const route::Timing* old = before.find(timing.route)) ratios.push_back(timing.median_us / old->median_us);
  }
  return ratios.empty() ? 1 : median(std::move(ratios));
}

/// Two measurements of one route: both count by their samples. Where they contradict each other the interval holds both.
inline route::Timing pooled(const route::Timing& a, const route::Timing& b) {
  const double share = static_cast<double>(a.samples) / static_cast<double>(a.samples + b.samples);
  const auto between = [&](double of_a, double of_b) { return std::exp(share * std::log(of_a) + (1 - share) * std::log(of_b)); };
  const bool contradict = a.low_us > b.high_us || b.low_us > a.high_us;
  return {a.route, between(a.median_us, b.median_us),
          contradict ? std::min(a.low_us, b.low_us) : between(a.low_us, b.low_us),
          contradict ? std::max(a.high_us, b.high_us) : between(a.high_us, b.high_us), a.samples + b.samples};
}

/// A cell that was measured again: what was known before is brought to the weather of this visit and counts too.
inline route::Cell merged(route::Cell cell, const route::Cell& before) {
  const double factor = weather(cell, before);
  for (route::Timing old : before.routes) {
    old.median_us *= factor, old.low_us *= factor, old.high_us *= factor;
    if (const route::Timing* same = cell.find(old.route)) {
      cell.routes[static_cast<std::size_t>(same - cell.routes.data())] = pooled(*same, old);
    } else {
      cell.routes.push_back(old);
    }
  }
  judge(cell);
  return cell;
}

class Contest {
 public:
  struct Contestant {
    Choice route;
    std::vector<double> samples_us{};
    int batch = 1;
    std::vector<double> tried_us{};   ///< single operations, before the turns
    double first_us = 0;   ///< the least of these
    bool out = false;  ///< lost: no more time is spent on it
    bool rare = false; ///< behind: measured in some rounds only, so that it meets the same weather as the others
  };
  std::vector<Contestant> contestants;

  void add(const Choice& route) { contestants.push_back({route}); }

  /// Before the turns: checks what each route computes and times it roughly, for batches that last about `batch_us`.
  template <class Clock, class Workload>
  void warm_up(Clock& clock, Workload& workload, double batch_us, double most) {
    for (Contestant& one : contestants) {
      workload.check(one.route);
      for (int k = 0; k < 3; ++k) one.tried_us.push_back(std::max(workload.time(clock, one.route).us, 0.02));
      // The least of three: the first meets what the route before left behind.
      one.first_us = *std::min_element(one.tried_us.begin(), one.tried_us.end());
      one.batch = static_cast<int>(std::clamp(std::ceil(batch_us / one.first_us), 1., most));
    }
  }

  /// Before the turns: routes of which even the best call is this far behind get no turn. Not for want of time alone: such a
  /// library's threads are at work for milliseconds after each, which may be what held another up. So whoever looks hopeless is
  /// tried again when these have come to rest, the quickest first.
  template <class Clock, class Workload>
  void drop_hopeless(Clock& clock, Workload& workload) {
    std::vector<Contestant*> quickest_first;
    for (Contestant& one : contestants) quickest_first.push_back(&one);
    std::stable_sort(quickest_first.begin(), quickest_first.end(), [](const auto* a, const auto* b) { return a->first_us < b->first_us; });
    double least = quickest_first.front()->first_us;
    bool rested = false;
    for (Contestant* one : quickest_first) {
      if (one->first_us <= hopeless_at_first * std::max(least, 1.)) continue;
      if (!std::exchange(rested, true)) workload.run(quickest_first.front()->route, operations_in(aftermath_us, least));
      for (int k = 0; k < 2; ++k) one->tried_us.push_back(workload.time(clock, one->route).us);
      one->first_us = *std::min_element(one->tried_us.begin(), one->tried_us.end());
      least = std::min(least, one->first_us);
      one->out = one->first_us > hopeless_at_first * std::max(least, 1.);
      if (one->out) one->samples_us = one->tried_us;
    }
  }
  static constexpr double hopeless_at_first = 10;

  /// A sample of every route that is still in, in an order that changes; returns the last. What the route before leaves behind
  /// (caches, threads of its library) is taken in by operations that are not timed. Slow routes come last: gloo's threads go
  /// on for milliseconds after them.
  template <class Clock, class Workload>
  Sample take_turns(Clock& clock, Workload& workload, std::size_t round) {
    double least = INFINITY;
    for (const Contestant& one : contestants) least = std::min(least, one.first_us);
    const auto is_slow = [&](const Contestant& one) { return one.first_us > std::max(slow_us, slow_ratio * least); };
    std::vector<std::size_t> order = turns(contestants.size(), round);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !is_slow(contestants[i]); });
    Sample last{};
    for (const std::size_t i : order) {
      Contestant& one = contestants[i];
      if (one.out || (one.rare && round % rare_rounds != 0)) continue;
      const bool slow = is_slow(one);
      const int untimed = slow ? 0 : after_slow_ ? operations_in(aftermath_us, one.first_us) : 1;
      if (untimed > 0) workload.run(one.route, untimed);
      last = workload.time(clock, one.route, one.batch);
      one.samples_us.push_back(last.us);
      after_slow_ = slow;
    }
    return last;
  }
  static constexpr double slow_us = 100, slow_ratio = 5, aftermath_us = 5000;
  static constexpr std::size_t rare_rounds = 16;
  static int operations_in(double us, double each_us) { return static_cast<int>(std::clamp(us / each_us, 1., 1000.)); }

  route::Timing timing(const Contestant& contestant) const {
    const double middle = std::max(median(contestant.samples_us), 0.001);  // the least a table can hold
    const Interval interval = median_interval(contestant.samples_us);
    return {contestant.route, middle, std::min(interval.low, middle), std::max(interval.high, middle),
            static_cast<std::int64_t>(contestant.samples_us.size())};
  }

  /// Those that cannot win any more leave. True when nothing is left to find out: one is in, or those that
  /// are in are within what counts as equal.
  bool settle() {
    const Contestant* best = nullptr;
    double best_us = INFINITY;
    for (const Contestant& contestant : contestants) {
      if (contestant.out || contestant.samples_us.empty()) continue;
      if (const double here = median(contestant.samples_us); here < best_us)
        best = &contestant, best_us = here;
    }
    if (!best) return true;
    const route::Timing leader = timing(*best);
    bool open = false;
    for (Contestant& contestant : contestants) {
      if (contestant.out || &contestant == best) continue;
      const route::Timing here = timing(contestant);
      const bool enough = std::min(here.samples, leader.samples) >= least_samples;
      const bool hopeless = here.samples >= hopeless_samples && here.low_us > hopeless_ratio * leader.high_us;
      contestant.out = hopeless || (enough && here.low_us > leader.high_us);
      const bool equal =
          here.samples >= plenty && here.high_us <= leader.low_us * route::near_ratio * route::near_ratio;
      open = open || !(contestant.out || equal);
    }
    return !open && leader.samples >= least_samples;
  }

  /// What the table keeps; routes without a sample are left out.
  route::Cell cell(const route::Key& key) const {
    route::Cell cell{key, {}, 1};
    for (const Contestant& contestant : contestants) {
      if (!contestant.samples_us.empty()) cell.routes.push_back(timing(contestant));
    }
    judge(cell);
    return cell;
  }

  static constexpr std::int64_t least_samples = few_samples;
  static constexpr std::int64_t plenty = 60;

 private:
  bool after_slow_ = true;
};

}  // namespace medley::tune

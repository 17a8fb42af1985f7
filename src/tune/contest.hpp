// Routes of one cell measured by turns, so that noise hits all alike, until it is clear which is fastest.
// Used by tune, and by bench without the early end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <medley/rules.hpp>
#include <utility>
#include <vector>

#include "route/choose.hpp"
#include "tune/known_cell.hpp"
#include "tune/sample_clock.hpp"
#include "tune/turns.hpp"

namespace medley::tune {

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
      try_calls(clock, workload, one, 3);
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
      try_calls(clock, workload, *one, 2);
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
  /// The least counts: the first meets what the route before left behind.
  template <class Clock, class Workload>
  static void try_calls(Clock& clock, Workload& workload, Contestant& one, int calls) {
    for (int k = 0; k < calls; ++k) one.tried_us.push_back(std::max(workload.time(clock, one.route).us, 0.02));
    one.first_us = *std::min_element(one.tried_us.begin(), one.tried_us.end());
  }

  bool after_slow_ = true;
};

}  // namespace medley::tune

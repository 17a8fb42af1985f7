// A race of the routes of one cell, with interleaved samples so that noise affects all alike, until the fastest is
// clear. Used by tune, and by bench without the early end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <medley/rules.hpp>
#include <utility>
#include <vector>

#include "route/choose.hpp"
#include "tune/cell_statistics.hpp"
#include "tune/cool_down.hpp"
#include "tune/interleave.hpp"
#include "tune/sample_clock.hpp"

namespace medley::tune {

class Race {
 public:
  struct Candidate {
    Choice route;
    std::vector<double> samples_us{};
    int batch = 1;
    std::vector<double> tried_us{};  ///< single operations, before the rounds
    double first_us = 0;             ///< their minimum
    bool out = false;                ///< lost: not measured any more
    bool rare = false;  ///< behind: measured in some rounds only, so that it sees the same drift as the others
  };
  std::vector<Candidate> candidates;

  explicit Race(const CoolDown& cool_down = after_operation) : cool_down_(cool_down) {}
  void add(const Choice& route) { candidates.push_back({route}); }

  /// Before the rounds: checks the result of each route and times it roughly, for batches that last about `batch_us`.
  template <class Clock, class Workload>
  void warm_up(Clock& clock, Workload& workload, double batch_us, double most) {
    for (Candidate& one : candidates) {
      workload.check(one.route);
      try_calls(clock, workload, one, 3);
      one.batch = static_cast<int>(std::clamp(std::ceil(batch_us / one.first_us), 1., most));
    }
  }

  /// Before the rounds: drops routes whose best call is this far behind. Not only to save time: such a library's
  /// threads keep running for milliseconds after each call, which may be what slowed another route. So slow routes are
  /// tried again once those threads are idle, the fastest first.
  template <class Clock, class Workload>
  void drop_far_behind(Clock& clock, Workload& workload) {
    std::vector<Candidate*> quickest_first;
    for (Candidate& one : candidates) quickest_first.push_back(&one);
    std::stable_sort(quickest_first.begin(), quickest_first.end(),
                     [](const auto* a, const auto* b) { return a->first_us < b->first_us; });
    double least = quickest_first.front()->first_us;
    bool rested = false;
    for (Candidate* one : quickest_first) {
      if (one->first_us <= far_behind_at_first * std::max(least, 1.)) continue;
      if (!std::exchange(rested, true))
        workload.run(quickest_first.front()->route, operations_in(cool_down_.rest_us, least));
      try_calls(clock, workload, *one, 2);
      least = std::min(least, one->first_us);
      one->out = one->first_us > far_behind_at_first * std::max(least, 1.);
      if (one->out) one->samples_us = one->tried_us;
    }
  }
  static constexpr double far_behind_at_first = 10;

  /// One sample of every remaining route, in an order that changes, the slow ones last; returns the last. Untimed
  /// operations first absorb the after-effects of the previous route (caches, threads of its library).
  template <class Clock, class Workload>
  Sample run_round(Clock& clock, Workload& workload, std::size_t round) {
    double least = INFINITY;
    for (const Candidate& one : candidates) least = std::min(least, one.first_us);
    const auto is_slow = [&](const Candidate& one) {
      return one.first_us > std::max(cool_down_.slow_us, cool_down_.slow_ratio * least);
    };
    std::vector<std::size_t> order = interleaved_order(candidates.size(), round);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return !is_slow(candidates[i]); });
    Sample last{};
    for (const std::size_t i : order) {
      Candidate& one = candidates[i];
      if (one.out || (one.rare && round % rare_rounds != 0)) continue;
      const bool slow = is_slow(one);
      const int untimed = slow ? 0 : after_slow_ ? operations_in(cool_down_.rest_us, one.first_us) : 1;
      if (untimed > 0) workload.run(one.route, untimed);
      last = workload.time(clock, one.route, one.batch);
      one.samples_us.push_back(last.us);
      after_slow_ = slow;
    }
    return last;
  }
  static constexpr std::size_t rare_rounds = 16;
  static int operations_in(double us, double each_us) { return static_cast<int>(std::clamp(us / each_us, 1., 1000.)); }

  route::Timing timing(const Candidate& candidate) const { return timing_of(candidate.route, candidate.samples_us); }

  /// Drops routes that cannot win any more. True when nothing is left to decide: one route remains, or the
  /// remaining ones count as equal.
  bool settle() {
    const Candidate* best = nullptr;
    double best_us = INFINITY;
    for (const Candidate& candidate : candidates) {
      if (candidate.out || candidate.samples_us.empty()) continue;
      if (const double here = median(candidate.samples_us); here < best_us) best = &candidate, best_us = here;
    }
    if (!best) return true;
    const route::Timing leader = timing(*best);
    bool open = false;
    for (Candidate& candidate : candidates) {
      if (candidate.out || &candidate == best) continue;
      const route::Timing here = timing(candidate);
      const bool enough = std::min(here.samples, leader.samples) >= least_samples;
      const bool far_behind = here.samples >= far_behind_samples && here.low_us > far_behind_ratio * leader.high_us;
      candidate.out = far_behind || (enough && here.low_us > leader.high_us);
      const bool equal =
          here.samples >= plenty && here.high_us <= leader.low_us * route::near_ratio * route::near_ratio;
      open = open || !(candidate.out || equal);
    }
    return !open && leader.samples >= least_samples;
  }

  /// The cell for the table; routes without a sample are left out.
  route::Cell cell(const route::Key& key) const {
    route::Cell cell{key, {}, 1};
    for (const Candidate& candidate : candidates) {
      if (!candidate.samples_us.empty()) cell.routes.push_back(timing(candidate));
    }
    rank_routes(cell);
    return cell;
  }

  static constexpr std::int64_t least_samples = few_samples;
  static constexpr std::int64_t plenty = 60;

 private:
  /// Takes the minimum: the first call sees the after-effects of the previous route.
  template <class Clock, class Workload>
  static void try_calls(Clock& clock, Workload& workload, Candidate& one, int calls) {
    for (int k = 0; k < calls; ++k) one.tried_us.push_back(std::max(workload.time(clock, one.route).us, 0.02));
    one.first_us = *std::min_element(one.tried_us.begin(), one.tried_us.end());
  }

  CoolDown cool_down_;
  bool after_slow_ = true;
};

}  // namespace medley::tune

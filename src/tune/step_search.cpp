#include "tune/step_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "tune/cell_statistics.hpp"
#include "tune/cool_down.hpp"
#include "tune/interleave.hpp"
#include "tune/size_text.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t most_halving_rounds = 20;  // of a first halving, by the time that is left
constexpr double part_of_time = 0.15;            // of what is left, for a first halving
constexpr double too_slow_to_win = 2;            // after three samples, an assignment this far behind cannot win
constexpr std::size_t samples_to_exclude = 3;
constexpr std::size_t least_neighbours = 4, most_neighbours = 64;  // tried together
constexpr double most_resting = 0.05;                              // of the time that is left, for one rest

/// The least of the medians; 0: nothing was measured.
double least_median(const std::vector<StepCandidate*>& pool) {
  double least = INFINITY;
  for (const StepCandidate* one : pool) {
    if (!one->us.empty()) least = std::min(least, median(one->us));
  }
  return std::isinf(least) ? 0 : least;
}

}  // namespace

double StepSearch::cost_us(double us) { return us < long_step_us ? 2 * us : us; }

double StepSearch::at_best(const std::vector<double>& us) { return median_interval(us).low; }

/// There may be thousands of samples, and sorting them takes time that other ranks wait for: less and less often.
void StepSearch::add_sample(StepCandidate& to, double us) {
  to.us.push_back(us);
  const std::size_t n = to.us.size();
  if (n <= 16 || (n & (n - 1)) == 0) to.best_us = at_best(to.us);
}

void StepSearch::add(Assignment assignment, bool library) {
  if (!tried_.insert(text_of(assignment.routes)).second) return;  // a table may choose one library for everything
  candidates_.push_back({std::move(assignment), library});
}

bool StepSearch::run_round(const Pool& pool, double share, Samples& samples) {
  samples.resize(pool.size());
  double least = INFINITY;
  for (const StepCandidate* one : pool) {
    if (!one->us.empty()) least = std::min(least, one->best_us);
  }
  /// 0: not slow.
  const auto slowness = [&](std::size_t i) {  // the slowest is the last of a round
    return pool[i]->best_us > after_step.slow_ratio * least ? pool[i]->best_us : 0;
  };
  std::vector<std::size_t> order = interleaved_order(pool.size(), rounds_++);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return slowness(a) < slowness(b); });
  for (const std::size_t i : order) {
    if (job_.over(share)) return false;
    const double rest_us =
        after_slow_ && after_slow_ != pool[i] ? std::min(after_step.rest_us, most_resting * job_.left_us(1)) : 0;
    for (double rested = 0; rested < rest_us;) rested += cost_us(job_.time_us(pool[i]->assignment));
    after_slow_ = slowness(i) > 0 ? pool[i] : nullptr;
    const double us = job_.time_us(pool[i]->assignment);
    samples[i].push_back(us);
    add_sample(*pool[i], us);
  }
  return true;
}

void StepSearch::measure_at_first() {
  std::size_t measured = 0;
  for (StepCandidate& one : candidates_) {
    if (first_round_us_ >= long_step_us && job_.over(share_of_cells)) break;
    add_sample(one, job_.time_us(one.assignment));
    first_round_us_ += cost_us(one.us.back());
    ++measured;
  }
  first_round_us_ *= static_cast<double>(candidates_.size()) / static_cast<double>(std::max<std::size_t>(measured, 1));
  if (measured < candidates_.size()) return;
  Pool pool;
  for (std::size_t round = 1; round < rounds_at_first; ++round) {
    double best = INFINITY;
    for (const StepCandidate& one : candidates_) best = std::min(best, at_best(one.us));
    pool.clear();
    // Other work slows a short sample down by any factor, a long one hardly by this one.
    const std::size_t enough = best >= long_step_us ? 1 : samples_to_exclude;
    for (StepCandidate& one : candidates_) {
      if (round < enough || at_best(one.us) <= too_slow_to_win * best) pool.push_back(&one);
    }
    Samples ignored;
    if (!run_round(pool, share_at_first, ignored)) return;
  }
}

/// Fastest first, as rank 0 sees it. Candidates without a sample are left out.
StepSearch::Pool StepSearch::sorted(const Pool& pool, const Samples& samples) {
  std::vector<std::uint8_t> order;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i].empty()) order.push_back(static_cast<std::uint8_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint8_t a, std::uint8_t b) { return median(samples[a]) < median(samples[b]); });
  job_.agree(order);
  Pool out;
  for (const std::uint8_t i : order) out.push_back(pool[i]);
  return out;
}

/// How many rounds a first halving can afford. What was not measured yet is about as fast as the fastest, from which it
/// differs in one slot, or which it was chosen to beat.
std::size_t StepSearch::rounds_for(const Pool& pool, double share) const {
  const double unknown_us = cost_us(least_median(pool));
  double round_us = 0;
  for (const StepCandidate* one : pool) round_us += one->us.empty() ? unknown_us : cost_us(median(one->us));
  const double rounds = round_us > 0 ? part_of_time * job_.left_us(share) / round_us : 0;
  return static_cast<std::size_t>(
      std::clamp(rounds, static_cast<double>(least_halving_rounds), static_cast<double>(most_halving_rounds)));
}

/// Each halving has twice the samples of the one before and half of its candidates, the faster ones.
StepSearch::Halved StepSearch::halve(Pool pool, double share) {
  for (std::size_t rounds = rounds_for(pool, share); pool.size() > 1; rounds *= 2) {
    Samples samples;
    bool in_time = true;
    for (std::size_t round = 0; in_time && round < rounds; ++round) in_time = run_round(pool, share, samples);
    const Pool ordered = sorted(pool, samples);
    if (!in_time) return {ordered, false};
    pool.assign(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>((ordered.size() + 1) / 2));
  }
  return {pool, true};
}

double StepSearch::halving_us(std::size_t count, double sample_us) {
  return static_cast<double>(least_halving_rounds * count) *
         std::log2(static_cast<double>(std::max<std::size_t>(count, 2))) * sample_us;
}

/// How many candidates successive halving can take in what is left of this share of the time.
std::size_t StepSearch::affordable(double share) const {
  const double sample_us = leader_ && !leader_->us.empty() ? cost_us(median(leader_->us)) : 0;
  std::size_t count = most_neighbours;
  while (count > least_neighbours && halving_us(count + 1, sample_us) > job_.left_us(share)) --count;
  return count;
}

/// The assignments that differ from this one in one slot and were not tried yet, as many as there is time for.
StepSearch::Neighbours StepSearch::neighbours(const StepCandidate& leader, const std::vector<StepSlot>& slots,
                                              const std::vector<std::vector<Choice>>& alternatives) {
  const Assignment base = leader.assignment;
  std::size_t most = 0;
  for (const auto& routes : alternatives) most = std::max(most, routes.size());
  const std::size_t limit = affordable(share_of_improving);
  Pool found;
  for (std::size_t place = 0; place < most; ++place) {  // the most promising routes of all slots first
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (place >= alternatives[slot].size()) continue;
      const Choice& other = alternatives[slot][place];
      Assignment changed = base;
      changed.routes[slot] = other;
      if (tried_.contains(text_of(changed.routes))) continue;
      if (found.size() >= limit) return {std::move(found), false};
      changed.name = fmt::format("{}, {} of {} over {}/{}", base.name, name(slots[slot].op),
                                 size_text(slots[slot].bytes), other.backend, other.algorithm);
      add(std::move(changed), false);
      found.push_back(&candidates_.back());
    }
  }
  return {std::move(found), true};
}

void StepSearch::lead_with_fastest() {
  Pool pool;
  Samples samples;
  for (StepCandidate& one : candidates_) {
    pool.push_back(&one);
    samples.push_back(one.us);
  }
  if (const Pool ordered = sorted(pool, samples); !ordered.empty()) leader_ = ordered.front();
}

void StepSearch::improve(const std::vector<StepSlot>& slots, const std::vector<std::vector<Choice>>& alternatives) {
  changes_ = std::transform_reduce(alternatives.begin(), alternatives.end(), std::size_t{0}, std::plus<>(),
                                   [](const auto& routes) { return routes.size(); });
  double best = INFINITY;
  for (const StepCandidate& one : candidates_) {
    if (!one.us.empty()) best = std::min(best, at_best(one.us));
  }
  Pool pool;
  for (StepCandidate& one : candidates_) {
    if (one.us.empty() || at_best(one.us) <= too_slow_to_win * best) pool.push_back(&one);
  }
  const Halved first = halve(std::move(pool), share_of_improving);
  if (!first.in_time) return lead_with_fastest();
  leader_ = first.pool.front();
  searched_ = Searched::in_part;
  while (!job_.over(share_of_improving)) {
    Neighbours changed = neighbours(*leader_, slots, alternatives);
    if (!changed.pool.empty()) {
      changed.pool.push_back(leader_);
      const Halved next = halve(std::move(changed.pool), share_of_improving);
      if (!next.in_time) return;  // the leader stays that of the round before
      if (std::exchange(leader_, next.pool.front()) != next.pool.front()) continue;
    }
    if (!changed.all) continue;
    searched_ = Searched::fully;
    return;
  }
}

}  // namespace medley::tune

#include "tune/step_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tune/cell_statistics.hpp"
#include "tune/cool_down.hpp"
#include "tune/interleave.hpp"
#include "tune/size_text.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t rounds_at_first = 4, rounds_again = 4;
constexpr std::size_t least_halving_rounds = 3, most_halving_rounds = 20;   // of a first halving, by the time that is left
constexpr double part_of_time = 0.15;                       // of what is left, for a first halving
constexpr double too_slow_to_win = 2;        // after three samples, an assignment this far behind cannot win
constexpr std::size_t samples_to_exclude = 3;
constexpr double far_too_slow = 5;      // a library that other work slowed down at first gets another chance, unless it is this far behind
constexpr double most_resting = 0.01;   // of the time that is left, for one rest
constexpr double near_library = 1.1;    // a library this close to the best one may be the best one
constexpr std::size_t first_check = few_samples, most_pairs = 512;   // of the comparison; each check has twice the pairs of the one before
constexpr double equal_within = 0.01;   // an interval of the gain this close to 1 counts as equal

using Samples = std::vector<std::vector<double>>;

std::string text_of(const std::vector<Choice>& routes) {
  std::string text;
  for (const Choice& route : routes) text += route.backend + "/" + route.algorithm + ";";
  return text;
}

/// The time that a sample of this length takes.
double cost_us(double us) { return us < StepSearch::long_step_us ? 2 * us : us; }

/// The least that a step may take by these samples: one disturbed sample must not rule an assignment out.
double at_best(const std::vector<double>& us) { return median_interval(us).low; }

const std::vector<double>& latest(const StepCandidate& one) { return one.fresh_us.empty() ? one.us : one.fresh_us; }

std::vector<double> ratios(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> out;
  for (std::size_t i = 0; i < std::min(above.size(), below.size()); ++i) out.push_back(above[i] / below[i]);
  return out;
}

route::Timing timing_of(const std::vector<double>& us) {
  const Interval interval = median_interval(us);
  return {{}, median(us), interval.low, interval.high, static_cast<std::int64_t>(us.size())};
}

}  // namespace

void StepSearch::add(Assignment assignment, bool library) {
  if (!tried_.insert(text_of(assignment.routes)).second) return;   // a table may choose one library for everything
  candidates_.push_back({std::move(assignment), library});
}

bool StepSearch::run_round(const Pool& pool, double share, Samples& samples) {
  samples.resize(pool.size());
  double least = INFINITY;
  for (const StepCandidate* one : pool) {
    if (!one->us.empty()) least = std::min(least, at_best(one->us));
  }
  /// 0: not slow.
  const auto slowness = [&](std::size_t i) {
    const double best = pool[i]->us.empty() ? 0 : at_best(pool[i]->us);
    return best > after_step.slow_ratio * least ? best : 0;   // the slowest is the last of a round
  };
  std::vector<std::size_t> order = interleaved_order(pool.size(), rounds_++);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return slowness(a) < slowness(b); });
  for (const std::size_t i : order) {
    if (job_.over(share)) return false;
    const double rest_us = after_slow_ && after_slow_ != pool[i] ? std::min(after_step.rest_us, most_resting * job_.left_us(1)) : 0;
    for (double rested = 0; rested < rest_us;) rested += cost_us(job_.time_us(pool[i]->assignment));
    after_slow_ = slowness(i) > 0 ? pool[i] : nullptr;
    const double us = job_.time_us(pool[i]->assignment);
    samples[i].push_back(us);
    pool[i]->us.push_back(us);
  }
  return true;
}

void StepSearch::measure_at_first() {
  for (StepCandidate& one : candidates_) {
    one.us.push_back(job_.time_us(one.assignment));
    first_round_us_ += cost_us(one.us.back());
  }
  Pool pool;
  for (std::size_t round = 1; round < rounds_at_first; ++round) {
    double best = INFINITY;
    for (const StepCandidate& one : candidates_) best = std::min(best, at_best(one.us));
    pool.clear();
    for (StepCandidate& one : candidates_) {
      if (round < samples_to_exclude || at_best(one.us) <= too_slow_to_win * best) pool.push_back(&one);
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
  std::stable_sort(order.begin(), order.end(), [&](std::uint8_t a, std::uint8_t b) { return median(samples[a]) < median(samples[b]); });
  job_.agree(order);
  Pool out;
  for (const std::uint8_t i : order) out.push_back(pool[i]);
  return out;
}

/// How many rounds a first halving can afford. What was not measured yet is about as fast as the leader, from which it differs in one slot.
std::size_t StepSearch::rounds_for(const Pool& pool, double share) const {
  const double unknown_us = leader_ && !leader_->us.empty() ? cost_us(median(leader_->us)) : 0;
  double round_us = 0;
  for (const StepCandidate* one : pool) round_us += one->us.empty() ? unknown_us : cost_us(median(one->us));
  const double rounds = round_us > 0 ? part_of_time * job_.left_us(share) / round_us : 0;
  return static_cast<std::size_t>(std::clamp(rounds, static_cast<double>(least_halving_rounds), static_cast<double>(most_halving_rounds)));
}

/// Each halving has twice the samples of the one before and half of its candidates, the faster ones. The fastest is first.
StepSearch::Pool StepSearch::halve(Pool pool, double share) {
  for (std::size_t rounds = rounds_for(pool, share); pool.size() > 1; rounds *= 2) {
    Samples samples;
    bool in_time = true;
    for (std::size_t round = 0; in_time && round < rounds; ++round) in_time = run_round(pool, share, samples);
    const Pool ordered = sorted(pool, samples);
    leader_won_ = in_time;
    if (!in_time) {   // not all have the same number of samples: those without keep their place behind the others
      Pool whole = ordered;
      for (StepCandidate* one : pool) {
        if (std::find(whole.begin(), whole.end(), one) == whole.end()) whole.push_back(one);
      }
      return whole;
    }
    pool.assign(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>((ordered.size() + 1) / 2));
  }
  return pool;
}

/// How many candidates successive halving can take in what is left of this share of the time.
std::size_t StepSearch::affordable(double share) const {
  const double sample_us = leader_ && !leader_->us.empty() ? cost_us(median(leader_->us)) : 0;
  if (sample_us <= 0) return 64;
  return static_cast<std::size_t>(job_.left_us(share) / sample_us / (2 * least_halving_rounds));   // later halvings take as long again
}

/// The assignments that differ from this one in one slot and were not measured yet, as many as there is time for.
StepSearch::Pool StepSearch::neighbours(const StepCandidate& leader, const std::vector<StepSlot>& slots,
                                        const std::vector<std::vector<Choice>>& alternatives) {
  const Assignment base = leader.assignment;
  std::size_t most = 0;
  for (const auto& routes : alternatives) most = std::max(most, routes.size());
  const std::size_t limit = std::clamp<std::size_t>(affordable(share_of_improving), 4, 64);
  Pool found;
  for (std::size_t place = 0; place < most; ++place) {   // the most promising routes of all slots first
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (found.size() >= limit) return found;
      if (place >= alternatives[slot].size()) continue;
      const Choice& other = alternatives[slot][place];
      Assignment changed = base;
      changed.routes[slot] = other;
      changed.name = fmt::format("{}, {} of {} over {}/{}", base.name, name(slots[slot].op),
                                 size_text(slots[slot].bytes), other.backend, other.algorithm);
      const std::size_t had = candidates_.size();
      add(std::move(changed), false);
      if (candidates_.size() > had) found.push_back(&candidates_.back());
    }
  }
  return found;
}

void StepSearch::improve(const std::vector<StepSlot>& slots, const std::vector<std::vector<Choice>>& alternatives) {
  changes_ = std::transform_reduce(alternatives.begin(), alternatives.end(), std::size_t{0}, std::plus<>(), [](const auto& routes) { return routes.size(); });
  double best = INFINITY;
  for (const StepCandidate& one : candidates_) {
    if (!one.us.empty()) best = std::min(best, at_best(one.us));
  }
  Pool pool;
  for (StepCandidate& one : candidates_) {
    if (one.us.empty() || at_best(one.us) <= too_slow_to_win * best) pool.push_back(&one);
  }
  leader_ = halve(std::move(pool), share_of_improving).front();
  while (!job_.over(share_of_improving)) {
    pool = neighbours(*leader_, slots, alternatives);
    if (pool.empty()) {
      exhausted_ = true;
      return;
    }
    pool.push_back(leader_);
    StepCandidate* const winner = halve(std::move(pool), share_of_improving).front();
    if (!std::exchange(leader_won_, true)) return;   // out of time: the leader stays that of the round before
    exhausted_ = winner == leader_;
    if (exhausted_) return;
    leader_ = winner;
  }
}

/// The library with the least median, by its latest samples; null: none was measured.
StepCandidate* StepSearch::best_library() const {
  const StepCandidate* best = nullptr;
  for (const StepCandidate& one : candidates_) {
    if (!one.library || one.us.empty()) continue;
    const bool newer = best && one.fresh_us.empty() != best->fresh_us.empty();
    if (!best || (newer ? best->fresh_us.empty() : median(latest(one)) < median(latest(*best)))) best = &one;
  }
  return const_cast<StepCandidate*>(best);
}

/// Another library that may be as fast as the best one; null: none.
StepCandidate* StepSearch::close_library(const StepCandidate& best) const {
  const StepCandidate* close = nullptr;
  for (const StepCandidate& one : candidates_) {
    if (!one.library || one.us.empty() || &one == &best || at_best(latest(one)) > near_library * median(latest(best))) continue;
    if (!close || at_best(latest(one)) < at_best(latest(*close))) close = &one;
  }
  return const_cast<StepCandidate*>(close);
}

std::vector<const StepCandidate*> StepSearch::libraries_to_measure_again() const {
  std::vector<const StepCandidate*> found;
  for (const StepCandidate& one : candidates_) {
    if (one.library && !one.us.empty() && at_best(one.us) <= far_too_slow * at_best(best_library()->us)) found.push_back(&one);
  }
  return found;
}

/// The few samples at first may all have met other work on the machine. False when the time is over.
bool StepSearch::measure_libraries_again() {
  Pool pool;
  for (const StepCandidate* one : libraries_to_measure_again()) pool.push_back(const_cast<StepCandidate*>(one));
  Samples samples;
  for (std::size_t round = 0; round < rounds_again; ++round) {
    if (!run_round(pool, 1, samples)) return false;
  }
  for (std::size_t i = 0; i < pool.size(); ++i) pool[i]->fresh_us = samples[i];
  return true;
}

void StepSearch::compare_with_libraries() {
  if (!leader_ || leader_->us.empty() || !best_library()) return;
  if (!measure_libraries_again()) return;
  StepCandidate* const first = best_library();
  if (leader_->library) {   // it led among what was left of the libraries
    if (median(latest(*first)) * near_library < median(latest(*leader_))) leader_ = first, exhausted_ = false;
    return;
  }
  mix_ = leader_;
  rivals_.push_back({first, {}, {}});
  if (StepCandidate* const second = close_library(*first)) rivals_.push_back({second, {}, {}});
  Pool pool{leader_};
  for (const Rival& rival : rivals_) pool.push_back(rival.library);
  std::size_t check = first_check;
  for (std::size_t pairs = 1; pairs <= most_pairs; ++pairs) {
    Samples round;
    if (!run_round(pool, 1, round)) return;
    for (std::size_t i = 0; i < rivals_.size(); ++i) {
      rivals_[i].mix_us.push_back(round[0].front());
      rivals_[i].library_us.push_back(round[i + 1].front());
    }
    if (pairs < check) continue;
    check *= 2;
    // An interval of 95 % that is looked at again and again excludes the truth at some time: two checks in a row must agree.
    std::vector<std::uint8_t> clear{static_cast<std::uint8_t>(verdict().clear ? 1 : 0)};
    job_.agree(clear);
    clear_checks_ = clear[0] != 0 ? clear_checks_ + 1 : 0;
    if (clear_checks_ == 2) return;
  }
}

StepVerdict StepSearch::verdict() const {
  StepVerdict out;
  out.library = leader_won_ && leader_->library ? leader_ : best_library();   // it won in interleaved rounds
  const Rival* closest = nullptr;   // the fastest library on the fresh samples
  for (const Rival& rival : rivals_) {
    if (rival.library_us.empty()) continue;
    if (!closest || median(rival.library_us) < median(closest->library_us)) closest = &rival;
  }
  out.chosen = out.library;
  if (!closest) {   // without a mix that led, the library stands alone
    if (out.library) out.library_us = out.chosen_us = out.library->us;
    const StepCandidate* second = out.library ? close_library(*out.library) : nullptr;
    out.confidence = out.library && second ? confidence_of(timing_of(out.library->us), timing_of(second->us)) : 1;
    out.settled = exhausted_ && leader_ && leader_->library;
    return out;
  }
  out.library = closest->library;
  out.library_us = closest->library_us;
  const std::vector<double> gains = ratios(closest->library_us, closest->mix_us);
  const Interval interval = median_interval(gains);
  const bool enough = gains.size() >= first_check;
  const bool faster = enough && interval.low > 1, slower = enough && interval.high < 1;
  const bool equal = enough && interval.low > 1 - equal_within && interval.high < 1 + equal_within;
  out.clear = faster || slower || equal;
  out.settled = out.clear && clear_checks_ >= 2;
  out.chosen = faster ? mix_ : closest->library;
  out.chosen_us = faster ? closest->mix_us : closest->library_us;
  out.confidence = confidence_of(timing_of(out.chosen_us), timing_of(faster ? closest->library_us : closest->mix_us));
  if (faster) out.gain = median(gains), out.gain_low = interval.low, out.gain_high = interval.high;
  return out;
}

double StepSearch::needed_seconds() const {
  const StepCandidate* const library = best_library();
  if (!library) return 0;
  const double sample_us = cost_us(median(latest(*library)));   // what comes later is about as fast
  const auto halving_us = [&](std::size_t count) {
    return static_cast<double>(least_halving_rounds * count) * std::log2(static_cast<double>(std::max<std::size_t>(count, 2))) * sample_us;
  };
  // The second search for a change of the leader ends it, as it finds none.
  const double improving_us = halving_us(candidates_.size()) + 2 * halving_us(changes_ + 1);
  double pairs = 2 * first_check;   // two checks
  for (const Rival& rival : rivals_) {
    const std::vector<double> gains = ratios(rival.library_us, rival.mix_us);
    if (gains.size() < first_check) continue;
    // An interval shrinks with the root of the pairs; it must not reach from the median to 1.
    const Interval interval = median_interval(gains);
    const double wide = (interval.high - interval.low) / 2, off = std::max(std::abs(median(gains) - 1), equal_within);
    pairs = std::max(pairs, 2 * static_cast<double>(gains.size()) * (wide / off) * (wide / off));
  }
  pairs = std::min(pairs, static_cast<double>(most_pairs));
  double comparing_us = static_cast<double>(1 + std::max<std::size_t>(rivals_.size(), 1)) * pairs * sample_us;
  for (const StepCandidate* one : libraries_to_measure_again()) comparing_us += rounds_again * cost_us(median(latest(*one)));
  const double parts_us[] = {rounds_at_first * first_round_us_ / share_at_first, improving_us / (share_of_improving - share_of_cells),
                             comparing_us / (1 - share_of_improving)};
  return *std::max_element(std::begin(parts_us), std::end(parts_us)) / 1e6;
}

}  // namespace medley::tune

// The end of a search for a step's routes: the libraries measured again, the mix that leads compared with the best of
// them, what the samples justify, and how long a search takes that settles.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "tune/cell_statistics.hpp"
#include "tune/step_search.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t rounds_again = 4;
// A library that other work slowed down at first gets another chance, unless it is this far behind
constexpr double far_too_slow = 5;
constexpr double near_library = 1.1;  // a library this close to the best one may be the best one
// Of the comparison; each check has twice the pairs of the one before
constexpr std::size_t first_check = few_samples, most_pairs = 512;
constexpr double equal_within = 0.01;  // an interval of the gain this close to 1 counts as equal

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

/// The library with the least median, by its latest samples; null: none was measured.
const StepCandidate* StepSearch::best_library() const {
  const StepCandidate* best = nullptr;
  for (const StepCandidate& one : candidates_) {
    if (!one.library || one.us.empty()) continue;
    const bool newer = best && one.fresh_us.empty() != best->fresh_us.empty();
    if (!best || (newer ? best->fresh_us.empty() : median(latest(one)) < median(latest(*best)))) best = &one;
  }
  return best;
}

/// Another library that may be as fast as the best one; null: none.
const StepCandidate* StepSearch::close_library(const StepCandidate& best) const {
  const StepCandidate* close = nullptr;
  for (const StepCandidate& one : candidates_) {
    if (!one.library || one.us.empty() || &one == &best || at_best(latest(one)) > near_library * median(latest(best)))
      continue;
    if (!close || at_best(latest(one)) < at_best(latest(*close))) close = &one;
  }
  return close;
}

/// The same candidate, to add samples to it.
StepCandidate& StepSearch::to_measure(const StepCandidate& candidate) {
  return *std::find_if(candidates_.begin(), candidates_.end(),
                       [&](const StepCandidate& one) { return &one == &candidate; });
}

std::vector<const StepCandidate*> StepSearch::libraries_to_measure_again() const {
  std::vector<const StepCandidate*> found;
  for (const StepCandidate& one : candidates_) {
    if (one.library && !one.us.empty() && at_best(one.us) <= far_too_slow * at_best(best_library()->us))
      found.push_back(&one);
  }
  return found;
}

/// The few samples at first may all have met other work on the machine. False when the time is over.
bool StepSearch::measure_libraries_again() {
  Pool pool;
  for (const StepCandidate* one : libraries_to_measure_again()) pool.push_back(&to_measure(*one));
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
  const StepCandidate* const first = best_library();
  if (leader_->library) {  // it led among what was left of the libraries
    if (median(latest(*first)) * near_library < median(latest(*leader_)))
      leader_ = &to_measure(*first), exhausted_ = false;
    return;
  }
  mix_ = leader_;
  rivals_.push_back({first, {}, {}});
  if (const StepCandidate* const second = close_library(*first)) rivals_.push_back({second, {}, {}});
  Pool pool{leader_};
  for (const Rival& rival : rivals_) pool.push_back(&to_measure(*rival.library));
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
    // An interval of 95 % that is looked at again and again excludes the truth at some time: two checks in a row must
    // agree.
    std::vector<std::uint8_t> clear{static_cast<std::uint8_t>(verdict().clear ? 1 : 0)};
    job_.agree(clear);
    clear_checks_ = clear[0] != 0 ? clear_checks_ + 1 : 0;
    if (clear_checks_ == 2) return;
  }
}

StepVerdict StepSearch::verdict() const {
  StepVerdict out;
  out.library = leader_won_ && leader_->library ? leader_ : best_library();  // it won in interleaved rounds
  const Rival* closest = nullptr;                                            // the fastest library on the fresh samples
  for (const Rival& rival : rivals_) {
    if (rival.library_us.empty()) continue;
    if (!closest || median(rival.library_us) < median(closest->library_us)) closest = &rival;
  }
  out.chosen = out.library;
  if (!closest) {  // without a mix that led, the library stands alone
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
  const double sample_us = cost_us(median(latest(*library)));  // what comes later is about as fast
  const auto halving_us = [&](std::size_t count) {
    return static_cast<double>(least_halving_rounds * count) *
           std::log2(static_cast<double>(std::max<std::size_t>(count, 2))) * sample_us;
  };
  // The second search for a change of the leader ends it, as it finds none.
  const double improving_us = halving_us(candidates_.size()) + 2 * halving_us(changes_ + 1);
  double pairs = 2 * first_check;  // two checks
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
  for (const StepCandidate* one : libraries_to_measure_again())
    comparing_us += rounds_again * cost_us(median(latest(*one)));
  const double parts_us[] = {rounds_at_first * first_round_us_ / share_at_first,
                             improving_us / (share_of_improving - share_of_cells),
                             comparing_us / (1 - share_of_improving)};
  return *std::max_element(std::begin(parts_us), std::end(parts_us)) / 1e6;
}

}  // namespace medley::tune

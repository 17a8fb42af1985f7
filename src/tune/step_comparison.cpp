// The end of a search for a step's routes: the libraries measured again, the leader compared with the best of them,
// what the samples justify, and how long a search takes that settles.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "route/choose.hpp"
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
constexpr double mix_equal_within = 0.01;

const std::vector<double>& latest(const StepCandidate& one) { return one.fresh_us.empty() ? one.us : one.fresh_us; }

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

/// The best library, and one that may be as fast as the fastest so far.
void StepSearch::choose_rivals() {
  const StepCandidate& best = *best_library();
  const StepCandidate& fastest = contender_->library ? *contender_ : best;
  for (const StepCandidate* one : {&best, close_library(fastest)}) {
    const auto known = [&](const Rival& rival) { return rival.library == one; };
    if (one && one != contender_ && std::none_of(rivals_.begin(), rivals_.end(), known))
      rivals_.push_back({one, {}, {}});
  }
}

void StepSearch::compare_with_libraries() {
  if (!leader_ || leader_->us.empty() || !best_library()) return;
  if (!measure_libraries_again()) return;
  StepCandidate& best = to_measure(*best_library());
  if (leader_->library && median(latest(best)) * near_library < median(latest(*leader_)))
    leader_ = &best, exhausted_ = false;  // other work had slowed it down at first
  contender_ = leader_;
  choose_rivals();
  if (rivals_.empty()) return;
  Pool pool{leader_};
  for (const Rival& rival : rivals_) pool.push_back(&to_measure(*rival.library));
  std::size_t check = first_check;
  for (std::size_t pairs = 1; pairs <= most_pairs; ++pairs) {
    Samples round;
    if (!run_round(pool, 1, round)) return;
    for (std::size_t i = 0; i < rivals_.size(); ++i) {
      rivals_[i].contender_us.push_back(round[0].front());
      rivals_[i].library_us.push_back(round[i + 1].front());
    }
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i]->fresh_us.push_back(round[i].front());
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

std::vector<double> StepSearch::Rival::gains() const {
  std::vector<double> out;
  for (std::size_t i = 0; i < contender_us.size(); ++i) out.push_back(library_us[i] / contender_us[i]);
  return out;
}

/// The fastest library on the fresh samples; null before there are enough for an interval.
const StepSearch::Rival* StepSearch::closest_rival() const {
  const Rival* closest = nullptr;
  for (const Rival& rival : rivals_) {
    if (rival.library_us.size() < first_check) continue;
    if (!closest || median(rival.library_us) < median(closest->library_us)) closest = &rival;
  }
  return closest;
}

/// An interval of the gain this close to 1 counts as equal. Of two libraries either will do, so that a few pairs are
/// enough.
double StepSearch::equal_within() const { return contender_->library ? route::near_ratio - 1 : mix_equal_within; }

StepVerdict StepSearch::verdict() const {
  const Rival* closest = closest_rival();
  return closest ? verdict_against(*closest) : verdict_of_library();
}

/// No other library comes close, or there was no time to compare.
StepVerdict StepSearch::verdict_of_library() const {
  StepVerdict out;
  out.library = leader_won_ && leader_->library ? leader_ : best_library();  // it won in interleaved rounds
  out.chosen = out.library;
  if (!out.library) return out;
  out.library_us = out.chosen_us = out.library->us;
  const StepCandidate* second = close_library(*out.library);
  out.confidence = second ? confidence_of(timing_of(out.library->us), timing_of(second->us)) : 1;
  out.compared = out.clear = contender_ && rivals_.empty() && leader_won_;
  out.settled = out.compared && exhausted_;
  return out;
}

StepVerdict StepSearch::verdict_against(const Rival& rival) const {
  StepVerdict out{.compared = leader_won_};
  const bool of_libraries = contender_->library;
  const std::vector<double> gains = rival.gains();
  const Interval interval = median_interval(gains);
  const bool faster = interval.low > 1, slower = interval.high < 1;
  const bool equal = interval.low > 1 - equal_within() && interval.high < 1 + equal_within();
  out.clear = faster || slower || equal;
  const bool leads = of_libraries ? median(gains) >= 1 : faster;  // a mix must be surely faster
  // A library that surely beat the leader has changes of its own that were not tried.
  const bool nothing_to_try = exhausted_ && !(of_libraries && slower);
  out.settled = nothing_to_try && (clear_checks_ >= 2 || gains.size() >= most_pairs);
  out.chosen = leads ? contender_ : rival.library;
  out.chosen_us = leads ? rival.contender_us : rival.library_us;
  out.library = of_libraries ? out.chosen : rival.library;
  out.library_us = of_libraries ? out.chosen_us : rival.library_us;
  out.confidence = confidence_of(timing_of(out.chosen_us), timing_of(leads ? rival.library_us : rival.contender_us));
  if (leads && !of_libraries) out.gain = median(gains), out.gain_low = interval.low, out.gain_high = interval.high;
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
    const std::vector<double> gains = rival.gains();
    if (gains.size() < first_check) continue;
    // An interval shrinks with the root of the pairs; it must not reach from the median to 1.
    const Interval interval = median_interval(gains);
    const double wide = (interval.high - interval.low) / 2, off = std::max(std::abs(median(gains) - 1), equal_within());
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

// The end of a search for a step's routes: the libraries measured again, the leader compared with the best of them over
// some seconds, what the samples justify, and how long a search takes that settles.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "route/choose.hpp"
#include "tune/cell_statistics.hpp"
#include "tune/step_search.hpp"

namespace medley::tune {
namespace {

constexpr std::size_t rounds_again = 4;
// A library that other work slowed down at first gets another chance, unless it is this far behind
constexpr double far_too_slow = 5;
// A long step needs only one sample to show that a library is this far behind
constexpr double too_slow_again = 1.5;
constexpr double near_library = 1.1;  // a library this close to the best one may be the best one
// A mix must gain more than this, and two libraries this close are equally fast: as much differs from one job to the
// next, by where ranks and memory are.
constexpr double least_gain = route::near_ratio;
// Of the comparison. With 2 ranks that were not bound, cores were shared for 3 to 10 s at a time, and a comparison of
// half a second took the wrong library in a third of simulated tunings.
constexpr std::size_t least_blocks = 3, least_pairs_of_block = 3, most_blocks = 40;
constexpr double longest_block_us = 1.5e6;
constexpr double settling_us = 4e6;       // a comparison of less time settles nothing
constexpr double settling_mix_us = 12e6;  // where a mix leads, it goes on for this long: a wrong mix costs a user most

const std::vector<double>& latest(const StepCandidate& one) { return one.fresh_us.empty() ? one.us : one.fresh_us; }

}  // namespace

std::vector<double> StepRival::gains() const {
  std::vector<double> out;
  for (std::size_t i = 0; i < leader_us.size(); ++i) out.push_back(library_us[i] / leader_us[i]);
  return out;
}

bool StepRival::blocks_within(double low, double high) const {
  if (block_gains.size() < least_blocks) return false;
  return std::all_of(block_gains.end() - least_blocks, block_gains.end(),
                     [&](double gain) { return gain > low && gain < high; });
}

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

StepSearch::Pool StepSearch::libraries_to_measure_again() {
  Pool found;
  for (StepCandidate& one : candidates_) {
    if (one.library && !one.us.empty() && at_best(one.us) <= far_too_slow * at_best(best_library()->us))
      found.push_back(&one);
  }
  return found;
}

/// The few samples at first may all have met other work on the machine. False when the time is over.
bool StepSearch::measure_libraries_again() {
  Pool pool = libraries_to_measure_again();
  std::map<StepCandidate*, std::vector<double>>
      fresh_us;  // all or nothing: one sample alone says less than the first ones
  for (std::size_t round = 0; round < rounds_again; ++round) {
    Samples samples;
    if (!run_round(pool, 1, samples)) return false;
    double best_us = INFINITY;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      fresh_us[pool[i]].push_back(samples[i].front());
      best_us = std::min(best_us, samples[i].front());
    }
    if (round == 0 && best_us >= long_step_us)
      std::erase_if(pool, [&](StepCandidate* one) { return fresh_us[one].front() > too_slow_again * best_us; });
  }
  for (auto& [library, us] : fresh_us) library->fresh_us = std::move(us);
  return true;
}

bool StepSearch::worth_improving() const {
  double needed_us = 0;
  for (const StepCandidate& one : candidates_) {
    if (one.us.empty()) return false;
    if (one.library) needed_us += static_cast<double>(rounds_again) * cost_us(median(one.us));
  }
  // A mix is compared with two libraries or so, and needs more than the least blocks to be surely faster.
  if (const StepCandidate* best = best_library())
    needed_us += 3 * static_cast<double>((least_blocks + 2) * least_pairs_of_block) * cost_us(median(best->us));
  return needed_us <= job_.left_us(1) - job_.left_us(share_of_improving);
}

/// The best library, and all that may be as fast by their latest samples.
void StepSearch::add_rivals() {
  const StepCandidate& best = *best_library();
  const double near_us = near_library * median(latest(leader_->library ? *leader_ : best));
  for (StepCandidate& one : candidates_) {
    if (!one.library || &one == leader_ || one.us.empty()) continue;
    const bool known = std::any_of(rivals_.begin(), rivals_.end(), [&](const auto& r) { return r.library == &one; });
    if (!known && (&one == &best || at_best(latest(one)) <= near_us)) rivals_.push_back({&one});
  }
}

/// Rounds of the leader and its rivals for this long. False when the time is over.
bool StepSearch::run_block(double block_us) {
  Pool pool{leader_};
  for (const StepRival& rival : rivals_) pool.push_back(rival.library);
  const double until_us = job_.left_us(1) - block_us;
  std::size_t pairs = 0;
  for (; pairs < least_pairs_of_block || job_.left_us(1) > until_us; ++pairs) {
    Samples round;
    if (!run_round(pool, 1, round)) break;
    for (std::size_t i = 0; i < rivals_.size(); ++i) {
      rivals_[i].leader_us.push_back(round[0].front());
      rivals_[i].library_us.push_back(round[i + 1].front());
    }
    for (std::size_t i = 0; i < pool.size(); ++i) pool[i]->fresh_us.push_back(round[i].front());
  }
  if (pairs < least_pairs_of_block) return false;
  for (StepRival& rival : rivals_) {
    const std::vector<double> gains = rival.gains();
    rival.block_gains.push_back(median({gains.end() - static_cast<std::ptrdiff_t>(pairs), gains.end()}));
  }
  return true;
}

void StepSearch::compare_with_libraries() {
  if (!best_library() || !measure_libraries_again()) return;
  const Pool libraries = libraries_to_measure_again();
  StepCandidate* const best = *std::find(libraries.begin(), libraries.end(), best_library());
  const bool beaten = leader_ && leader_->library && median(latest(*best)) * near_library < median(latest(*leader_));
  if (!leader_ || beaten) {  // other work had slowed it down at first
    leader_ = best;
    searched_ = std::min(searched_, Searched::in_part);
  }
  const double from_us = job_.left_us(1);
  const double block_us = std::min(from_us / (least_blocks + 1), longest_block_us);
  while (blocks_ < most_blocks) {
    add_rivals();
    no_rival_ = rivals_.empty();
    if (no_rival_ || !run_block(block_us)) return;
    ++blocks_;
    compared_us_ = from_us - job_.left_us(1);
    const StepVerdict now = verdict();
    const bool long_enough = compared_us_ >= (now.chosen->library ? settling_us : settling_mix_us);
    std::vector<std::uint8_t> ends{static_cast<std::uint8_t>(now.clear && long_enough ? 1 : 0)};
    job_.agree(ends);
    if (ends[0] != 0) return;
  }
}

/// Whether the leader, a mix, is surely faster than this library.
bool StepSearch::beats(const StepRival& rival) const {
  return rival.leader_us.size() >= few_samples && median_interval(rival.gains()).low > least_gain &&
         rival.blocks_within(1, INFINITY);
}

/// Whether the leader, a mix, surely gains too little over this library.
bool StepSearch::loses_to(const StepRival& rival) const {
  return rival.leader_us.size() >= few_samples && median_interval(rival.gains()).high < least_gain &&
         rival.blocks_within(0, least_gain);
}

bool StepSearch::decided() const {
  const auto beaten = [this](const StepRival& rival) { return beats(rival); };
  const auto ahead = [this](const StepRival& rival) { return loses_to(rival); };
  if (!leader_->library)
    return std::all_of(rivals_.begin(), rivals_.end(), beaten) || std::any_of(rivals_.begin(), rivals_.end(), ahead);
  return std::all_of(rivals_.begin(), rivals_.end(), [](const StepRival& rival) {
    if (rival.leader_us.size() < few_samples) return false;
    const Interval interval = median_interval(rival.gains());
    const auto is_within = [&](double low, double high) {
      return interval.low > low && interval.high < high && rival.blocks_within(low, high);
    };
    return is_within(1, INFINITY) || is_within(0, 1) || is_within(1 / least_gain, least_gain);
  });
}

/// The fastest library beside the leader, by pairs; null before there are enough for an interval.
const StepRival* StepSearch::closest_rival() const {
  const StepRival* closest = nullptr;
  for (const StepRival& rival : rivals_) {
    if (rival.leader_us.size() < few_samples) continue;
    if (!closest || median(rival.gains()) < median(closest->gains())) closest = &rival;
  }
  return closest;
}

StepVerdict StepSearch::verdict() const {
  const StepRival* closest = closest_rival();
  return closest ? verdict_against(*closest) : verdict_of_library();
}

/// No other library comes close, or there was no time to compare.
StepVerdict StepSearch::verdict_of_library() const {
  StepVerdict out;
  const bool won = leader_ && leader_->library && searched_ != Searched::interrupted;  // in interleaved rounds
  out.chosen = out.library = won ? leader_ : best_library();
  if (!out.library) return out;
  out.library_us = out.chosen_us = latest(*out.library);
  out.compared = out.clear = no_rival_ && searched_ != Searched::interrupted;
  out.settled = out.compared && searched_ == Searched::fully;
  if (out.compared) out.confidence = 1;
  return out;
}

StepVerdict StepSearch::verdict_against(const StepRival& rival) const {
  StepVerdict out{.clear = decided(), .compared = searched_ != Searched::interrupted};
  const std::vector<double> gains = rival.gains();
  const bool leads = leader_->library ? median(gains) >= 1
                                      : std::all_of(rivals_.begin(), rivals_.end(),
                                                    [this](const StepRival& one) { return beats(one); });
  out.chosen = leads ? leader_ : rival.library;
  out.chosen_us = leads ? rival.leader_us : rival.library_us;
  out.library = leader_->library ? out.chosen : rival.library;
  out.library_us = leader_->library ? out.chosen_us : rival.library_us;
  const Interval interval = median_interval(gains);
  // A library that surely beat the leader has changes of its own that were not tried.
  const bool nothing_to_try = searched_ == Searched::fully && !(leader_->library && interval.high < 1 / least_gain);
  out.settled = nothing_to_try && compared_us_ >= settling_us && (out.clear || blocks_ >= most_blocks);
  out.confidence =
      confidence_of(timing_of({}, out.chosen_us), timing_of({}, leads ? rival.library_us : rival.leader_us));
  if (leads && !leader_->library) out.gain = median(gains), out.gain_low = interval.low, out.gain_high = interval.high;
  return out;
}

/// What a comparison takes that settles: an interval shrinks with the root of the pairs, and must not reach from the
/// median to what it has to exclude.
double StepSearch::comparing_us(double sample_us) const {
  double pairs = static_cast<double>(least_blocks * least_pairs_of_block);
  for (const StepRival& rival : rivals_) {
    const std::vector<double> gains = rival.gains();
    if (gains.size() < few_samples) continue;
    const Interval interval = median_interval(gains);
    const double wide = (interval.high - interval.low) / 2, off = std::abs(median(gains) - least_gain);
    const double narrower = wide / std::max(off, least_gain - 1);
    pairs = std::max(pairs, static_cast<double>(gains.size()) * narrower * narrower);
  }
  const double pair_us = static_cast<double>(1 + std::max<std::size_t>(rivals_.size(), 1)) * sample_us;
  return std::clamp(pairs * pair_us, settling_us, most_blocks * longest_block_us);
}

double StepSearch::needed_seconds() const {
  const StepCandidate* const library = best_library();
  if (!library) return 0;
  const double sample_us = cost_us(median(latest(*library)));  // what comes later is about as fast
  // The second search for a change of the leader ends it, as it finds none.
  const double improving_us = halving_us(candidates_.size(), sample_us) + 2 * halving_us(changes_ + 1, sample_us);
  double end_us = comparing_us(sample_us);
  for (const StepCandidate& one : candidates_) {
    if (one.library && !one.us.empty())
      end_us += rounds_again * cost_us(std::min(median(latest(one)), far_too_slow * sample_us));
  }
  const double parts_us[] = {rounds_at_first * first_round_us_ / share_at_first,
                             improving_us / (share_of_improving - share_of_cells), end_us / (1 - share_of_improving)};
  return *std::max_element(std::begin(parts_us), std::end(parts_us)) / 1e6;
}

}  // namespace medley::tune

// Searches the fastest assignment of routes for a step by timing the step itself: successive halving among whole
// assignments, then improvements of the leader one slot at a time, then a comparison of the leader with the best
// libraries on fresh samples. Knows no communication: the step tuner gives it samples, time and rank 0's decisions.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "route/tuned_step.hpp"
#include "tune/step.hpp"

namespace medley::tune {

/// What a search needs of the job. Every function is collective and returns the same on all ranks.
struct SearchJob {
  std::function<double(const Assignment&)> time_us;  ///< one sample of the step, µs
  /// Whether this share of the time is used, or the user stopped it
  std::function<bool(double share)> over;
  std::function<double(double share)> left_us;            ///< how much is left of this share
  std::function<void(std::vector<std::uint8_t>&)> agree;  ///< replaces a decision by rank 0's
};

/// An assignment and its samples.
struct StepCandidate {
  Assignment assignment;
  bool library = false;  ///< one library for everything: what a mix must beat
  std::vector<double> us{};
  double best_us = 0;              ///< at_best(us), of late
  std::vector<double> fresh_us{};  ///< of the end, from when all libraries are measured again
};

/// The choice that the samples so far justify.
struct StepVerdict {
  const StepCandidate* chosen = nullptr;          ///< a mix only if it was surely faster than every library
  const StepCandidate* library = nullptr;         ///< the best library
  std::vector<double> chosen_us{}, library_us{};  ///< the samples compared
  double gain = 1, gain_low = 1, gain_high = 1;   ///< library over chosen, by pairs of adjacent samples
  double confidence = 0.5;                        ///< that the choice is at least as fast as the best library
  bool clear = false;                             ///< the intervals decide, and the latest blocks agree with them
  bool compared = false;                          ///< on fresh samples, with all libraries that come close
  bool settled = false;                           ///< more time would hardly change it
};

/// A library that the leader is compared with: samples in pairs of one round, in blocks. What other work on the machine
/// and the placement of ranks do to a step changes from second to second, and differently for each assignment, so that an
/// interval of samples from one moment says little about the next.
struct StepRival {
  StepCandidate* library;
  std::vector<double> leader_us{}, library_us{};
  std::vector<double> block_gains{};  ///< library over leader, the median of each block

  std::vector<double> gains() const;  ///< library over leader, by pairs
  /// Whether the latest blocks all have a gain in this range.
  bool blocks_within(double low, double high) const;
};

class StepSearch {
 public:
  explicit StepSearch(SearchJob job) : job_(std::move(job)) {}

  /// Adds a candidate that takes part from the beginning.
  void add(Assignment assignment, bool library);
  /// A few samples of each candidate so far, at least one even if the time is short: the fallback of everything that
  /// follows.
  void measure_at_first();
  /// Takes the fastest candidate so far for the comparison with the libraries.
  void lead_with_fastest();
  /// Successive halving among all candidates, then among the leader and what differs from it in one slot, as long as
  /// that helps. `alternatives`: routes for each slot.
  void improve(const std::vector<StepSlot>& slots, const std::vector<std::vector<Choice>>& alternatives);
  /// Measures all libraries again, then compares the leader on fresh samples with those that come close to the fastest,
  /// in blocks over some seconds, until they agree which is faster.
  void compare_with_libraries();
  /// Whether what would be left after improving suffices to compare a mix with the libraries. If not, all time is for
  /// that.
  bool worth_improving() const;

  StepVerdict verdict() const;
  /// How many seconds a search of this step takes that settles, by the samples so far: each part needs its share of the
  /// time.
  double needed_seconds() const;
  const std::deque<StepCandidate>& candidates() const { return candidates_; }

  /// Of the time, when each part must have ended. Single operations are measured by the tuner, between the first two.
  static constexpr double share_at_first = 0.15, share_of_cells = 0.4, share_of_improving = 0.7;
  /// A step of this length absorbs by itself what the one before left in caches and threads; a shorter one is run
  /// untimed first.
  static constexpr double long_step_us = 10'000;

 private:
  using Pool = std::vector<StepCandidate*>;
  using Samples = std::vector<std::vector<double>>;
  static constexpr std::size_t rounds_at_first = 4, least_halving_rounds = 3;
  /// The time that a sample of this length takes.
  static double cost_us(double us);
  /// The least that a step may take by these samples: one disturbed sample must not rule an assignment out.
  static double at_best(const std::vector<double>& us);
  static void add_sample(StepCandidate& to, double us);
  /// One sample of each, in an order that changes; false when the time is over.
  bool run_round(const Pool& pool, double share, Samples& samples);
  Pool libraries_to_measure_again();
  bool measure_libraries_again();
  std::size_t rounds_for(const Pool& pool, double share) const;
  /// What successive halving of so many takes.
  static double halving_us(std::size_t count, double sample_us);
  std::size_t affordable(double share) const;
  struct Halved {
    Pool pool;  ///< fastest first; those without a sample are missing
    bool in_time;
  };
  Halved halve(Pool pool, double share);
  Pool sorted(const Pool& pool, const Samples& samples);
  struct Neighbours {
    Pool pool;
    bool all;  ///< no other is left to try
  };
  Neighbours neighbours(const StepCandidate& leader, const std::vector<StepSlot>& slots,
                        const std::vector<std::vector<Choice>>& alternatives);
  const StepCandidate* best_library() const;
  void add_rivals();
  bool run_block(double block_us);
  bool beats(const StepRival& rival) const;
  bool loses_to(const StepRival& rival) const;
  bool decided() const;
  const StepRival* closest_rival() const;
  StepVerdict verdict_of_library() const;
  StepVerdict verdict_against(const StepRival& rival) const;
  double comparing_us(double sample_us) const;

  SearchJob job_;
  std::deque<StepCandidate> candidates_;  // a deque: pointers stay valid
  std::set<std::string> tried_;           // the routes of all candidates
  std::size_t rounds_ = 0;
  const StepCandidate* after_slow_ = nullptr;  // the slow assignment that ran last: its threads may still be running
  double first_round_us_ = 0;                  // what one sample of each candidate took at first
  std::size_t changes_ = 0;                    // of one slot, that a leader can have
  StepCandidate* leader_ = nullptr;
  /// How far the search for changes of the leader came: it was interrupted, a halving ended, or no change of one slot is
  /// left that could help.
  enum class Searched : std::uint8_t { interrupted, in_part, fully };
  Searched searched_ = Searched::interrupted;
  std::vector<StepRival> rivals_;
  std::size_t blocks_ = 0;
  double compared_us_ = 0;  // how long the comparison has taken
  bool no_rival_ = false;   // no library comes close to the leader, which is one itself
};

}  // namespace medley::tune

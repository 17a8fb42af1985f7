// The backoff of one wait: polls while an answer may come at once, then yields the core, then sleeps. Also decides how
// often to check for events without a doorbell. Knows no operation and no library.
#pragma once

#include <chrono>

#include <medley/sdk/backoff_policy.hpp>

namespace medley::core {

/// How a thread waits, given the busy lanes.
struct Waiting {
  BackoffPolicy policy;
  EventCount* event_count = nullptr;  ///< wakes it; null: it takes short naps
  /// A lane without an event count has something to deliver and must be polled now and then
  bool undelivered = false;
};

class MEDLEY_API Backoff {
 public:
  static constexpr std::chrono::milliseconds longest_sleep{20};  ///< how soon a lost rank or an abort is noticed
  static constexpr std::chrono::microseconds short_nap{50};      ///< where there is no event count

  /// One step of waiting; true when it is time to sleep.
  bool step(const Waiting& waiting);
  /// Something moved: an answer may come at once again.
  void reset() { spins_ = yields_ = 0; }
  /// How long the next sleep lasts; each is twice as long as the one before.
  std::chrono::nanoseconds next_sleep(const Waiting& waiting);

  /// Whether it is time to check for events without a doorbell: deadlines and lost ranks. `last`: when that was done
  /// last, by whichever wait.
  bool check_due(Deadline now, Deadline& last) const;
  /// A member is lost; its last bytes are received within the grace period: checks and sleeps are short.
  void expect_loss(bool somebody_lost) { somebody_lost_ = somebody_lost; }
  bool loss_expected() const { return somebody_lost_; }

 private:
  static int yield(const Waiting& waiting);

  int spins_ = 0;
  int yields_ = 0;
  std::chrono::milliseconds sleep_{1};
  bool somebody_lost_ = false;
};

}  // namespace medley::core

// The state of one wait: polls as long as an answer may come at once, then yields the core, then sleeps; and how often what
// does not ring is looked for. Part of the engine's waits; knows no operation and no library.
#pragma once

#include <chrono>

#include <medley/sdk/backoff_policy.hpp>

namespace medley::core {

/// How a thread waits, by the lanes that are busy.
struct Waiting {
  BackoffPolicy policy;
  EventCount* event_count = nullptr;   ///< wakes it; none: it takes short naps
  bool undelivered = false;         ///< something of a lane that does not ring must be polled now and then
};

class MEDLEY_API Backoff {
 public:
  static constexpr std::chrono::milliseconds longest_sleep{20};   ///< how soon a death or an abort is noticed
  static constexpr std::chrono::microseconds short_nap{50};       ///< where nobody rings

  explicit Backoff(Deadline last_check = {}) : last_check_(last_check) {}
  /// One step of waiting; true when it is time to sleep.
  bool step(const Waiting& waiting);
  /// Something moved: an answer may come at once again.
  void reset() { spins_ = yields_ = 0; }
  /// How long the next sleep lasts; each is twice as long as the one before.
  std::chrono::nanoseconds next_sleep(const Waiting& waiting);

  /// Whether it is time to look for what does not ring: deadlines and deaths.
  bool check_due(Deadline now);
  Deadline last_check() const { return last_check_; }
  /// A member is gone and given the grace to have its last bytes taken in: looks and sleeps are short.
  void expect_loss(bool somebody_lost) { somebody_lost_ = somebody_lost; }
  bool loss_expected() const { return somebody_lost_; }

 private:
  static int yield(const Waiting& waiting);

  int spins_ = 0;
  int yields_ = 0;
  std::chrono::milliseconds sleep_{1};
  Deadline last_check_{};
  bool somebody_lost_ = false;
};

}  // namespace medley::core

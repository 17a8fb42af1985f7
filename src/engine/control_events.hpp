// What the control thread hands to the engine's threads: lost ranks, failures announced by other ranks, verdicts of the
// consistency checker. The control thread only posts; the next thread that enters the engine handles it
// (Engine::handle_events), within 20 ms if a thread waits there. Otherwise it is handled when a thread next calls in,
// before anything is issued.
#pragma once

#include <atomic>
#include <cstdint>
#include <medley/error.hpp>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace medley::core {

/// A rank of the world is lost, or has left (`how` is empty).
struct RankGone {
  int world_rank;
  std::string how;
};
/// Time to check whether an operation still waits for a lost rank.
struct LookForGone {};
/// Another rank aborted this comm.
struct CommFailed {
  std::string comm;
  Error why;
};
/// Check mode: all ranks called the same collective.
struct CollectiveAgreed {
  std::string comm;
  std::uint64_t sequence;
};
using ControlEvent = std::variant<RankGone, LookForGone, CommFailed, CollectiveAgreed>;

class ControlEvents {
 public:
  void post(ControlEvent event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    any_.store(true, std::memory_order_release);  // pairs with the acquire in any()
  }
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }  // pairs with the release store in post()
  std::vector<ControlEvent> take() {
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);  // relaxed: under the lock, and a later post sets it again
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;  ///< held for no longer than a push or a swap
  std::vector<ControlEvent> events_;
  std::atomic<bool> any_{false};
};

}  // namespace medley::core

// What the control thread hands to the engine's threads: losses, failures that other ranks tell, verdicts of the consistency
// checker. The control thread only posts; whoever enters the engine next acts on it (Engine::handle_events), within 20 ms where a
// thread waits in it. A rank whose threads are all elsewhere acts when one of them comes back, before anything is issued.
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
/// Time to look whether somebody still waits for a rank that is gone.
struct LookForGone {};
/// Another rank gave this comm up.
struct CommFailed {
  std::string comm;
  Error why;
};
/// Check mode: all ranks called the same as this collective.
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
    any_.store(true, std::memory_order_release);   // pairs with the acquire in any()
  }
  bool any() const noexcept { return any_.load(std::memory_order_acquire); }   // pairs with the release store in post()
  std::vector<ControlEvent> take() {
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);   // relaxed: under the lock, and a later post sets it again
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;   ///< held for no longer than a push or a swap
  std::vector<ControlEvent> events_;
  std::atomic<bool> any_{false};
};

}  // namespace medley::core

// How a thread that waits for UCX sleeps: on the worker's event file, which a peer's message makes readable.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <medley/backend.hpp>

namespace medley::ucx {

class WorkerEventCount final : public EventCount {
 public:
  explicit WorkerEventCount(const BackendParams& params);
  ~WorkerEventCount() override;
  WorkerEventCount(const WorkerEventCount&) = delete;
  WorkerEventCount& operator=(const WorkerEventCount&) = delete;

  void attach(ucp_worker_h worker);
  /// A thread has announced its sleep and the events are not armed yet. Called, like arm(), under the engine's lock.
  bool arm_wanted() const { return arm_wanted_.load(std::memory_order_relaxed); }
  /// Makes the next arrival wake the sleepers; false when something has arrived already.
  bool arm();

  int spins() const override { return oversubscribed_ ? 0 : 200; }
  int yields() const override { return oversubscribed_ ? 60 : 200; }
  bool oversubscribed() const override { return oversubscribed_; }
  std::uint32_t prepare() override;
  void sleep(std::uint32_t ticket, std::chrono::nanoseconds at_most) override;
  void cancel() override;
  void wake_own() noexcept override;

 private:
  bool oversubscribed_;
  ucp_worker_h worker_ = nullptr;
  int arrivals_ = -1;  ///< UCX's event file, closed by it
  int calls_;          ///< from this rank's other threads: counts how many sleepers to wake
  // relaxed: the engine's lock orders them. A thread that announces its sleep polls once more under it, where the
  // events are armed, and a thread that completes operations wakes the sleepers under it: either it sees the
  // announcement, or that poll sees what it completed. sleep() may find armed_ as another thread's later prepare() left
  // it; then it does not sleep and polls again.
  std::atomic<int> sleepers_{0};
  std::atomic<bool> arm_wanted_{false};
  std::atomic<bool> armed_{false};
};

}  // namespace medley::ucx

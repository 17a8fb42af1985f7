// A thread that progresses a context's pending operations while the program is elsewhere. Needed for CUDA buffers over
// host backends and for PyTorch, which may never call in; optional otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace medley::core {

class Engine;

/// Sleeps while nothing is pending and while callers wait, since waiting callers make progress for everything.
class ProgressThread {
 public:
  explicit ProgressThread(Engine& engine);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Something is pending now. Called under the engine's lock, as is going_idle(), so that no wake-up is lost.
  /// (relaxed: the lock orders idle_ between them, and what is pending is read under it. notify_one() ends a wait that
  /// has seen the old value.)
  void nudge() noexcept {
    if (!idle_.load(std::memory_order_relaxed)) return;
    idle_.store(false, std::memory_order_relaxed);
    idle_.notify_one();
  }
  void going_idle() noexcept { idle_.store(true); }
  bool stopping() const noexcept { return stop_.load(); }

 private:
  void run();
  Engine& engine_;
  std::atomic<bool> idle_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace medley::core

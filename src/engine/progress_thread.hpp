// A thread that moves a context's pending operations while the program is elsewhere: for CUDA buffers over host
// backends and for PyTorch, where nobody may have to call in; optional otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace medley::core {

class Engine;

/// Sleeps while nothing is pending and while callers wait themselves, who move everything anyway.
class ProgressThread {
 public:
  explicit ProgressThread(Engine& engine);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// Something is pending now. Called under the engine's lock, as is going_idle(), so that none is missed.
  /// (relaxed: the lock orders idle_ between them, and what is pending is read under it. notify_one() takes care that a wait that
  /// has seen the old value ends.)
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

// Replaces src/engine/engine.hpp for progress_thread_stop_test.cpp: an engine without work, so that its thread is
// stopped just when it goes idle.
#pragma once

#include <atomic>

#include "engine/progress_thread.hpp"

namespace medley::core {

class Engine {
 public:
  /// `delay`: how many loop iterations after this becomes visible the thread goes idle.
  explicit Engine(int delay) : delay_(delay) {}

  void run_progress_thread(ProgressThread& thread) {
    tended_.store(true, std::memory_order_release);
    for (int turn = 0; turn < delay_; ++turn) asm volatile("" ::: "memory");
    thread.going_idle();
  }
  bool tended() const { return tended_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> tended_{false};
  int delay_;
};

}  // namespace medley::core

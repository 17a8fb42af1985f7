// The engine's lock: held for the time of a poll, released by a plain store. A mutex's second atomic operation would be
// a tenth of a small all_reduce.
#pragma once

#include <sched.h>

#include <atomic>

#include "core/pause.hpp"

namespace medley::core {

class Spinlock {
 public:
  void lock() noexcept {
    for (int spins = 0; taken_.exchange(true, std::memory_order_acquire); ++spins) {
      while (taken_.load(std::memory_order_relaxed)) {
        if (++spins < 100) {
          pause();
        } else {
          sched_yield();   // the holder may be in a long copy, or wait for this core
        }
      }
    }
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace medley::core

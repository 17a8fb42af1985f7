// A lock for what takes less than a poll, released by a plain store. A mutex's second atomic operation would cost a
// tenth of a small all_reduce.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>

#include <medley/sdk/may_block.hpp>
#include <medley/sdk/pause.hpp>

namespace medley {

class Spinlock {
 public:
  void lock() noexcept {
    pthread_t nobody = 0;
    // Pairs with the release store in unlock().
    for (int spins = 0; !holder_.compare_exchange_strong(nobody, pthread_self(), std::memory_order_acquire); ++spins) {
      nobody = 0;
      while (holder_.load(std::memory_order_relaxed) != 0) {  // relaxed: the exchange above acquires
        if (++spins < 100) {
          pause();
        } else {
          sched_yield();  // the holder may be in a long copy, or need this core
        }
      }
    }
    count_engine_lock(1);
  }
  void unlock() noexcept {
    count_engine_lock(-1);
    holder_.store(0, std::memory_order_release);  // pairs with the exchange in lock()
  }
  /// Whether the calling thread holds it. (relaxed: only this thread writes its own id here, so it reads that or
  /// another)
  bool held_here() const noexcept { return holder_.load(std::memory_order_relaxed) == pthread_self(); }

 private:
  std::atomic<pthread_t> holder_{0};
};

}  // namespace medley

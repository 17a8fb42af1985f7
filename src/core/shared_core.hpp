// Notices that a rank waits on the very core its peer needs, though others are free, and moves to a free one. Used by the
// engine's waits: the kernel may leave two ranks that only yield to each other on one core for good, at 25 us an operation
// instead of 3 (4-byte all_reduce over torch, 2 ranks on 2 cores; a third of the runs after one over gloo began so).
#pragma once

#include <atomic>
#include <ctime>

namespace medley::core {

class SharedCore {
 public:
  /// A yield in a wait came back late, so somebody took the core. By then the peer has answered and there is nothing left to
  /// sleep for; but whoever sleeps is woken on a free core, so after some such waits in a row it sleeps nevertheless. Where
  /// that does not help it is done half as often each time.
  void taken() noexcept {
    if (late_.fetch_add(1, std::memory_order_relaxed) + 1 < patience_.load(std::memory_order_relaxed)) return;
    late_.store(0, std::memory_order_relaxed);
    const int patience = patience_.load(std::memory_order_relaxed);
    patience_.store(patience < most_patience ? patience * 2 : patience, std::memory_order_relaxed);
    const timespec shortest{0, 1};   // some 55 us with the kernel's slack
    nanosleep(&shortest, nullptr);
  }
  /// A wait ended and nobody had taken the core.
  void own() noexcept {
    late_.store(0, std::memory_order_relaxed);
    patience_.store(least_patience, std::memory_order_relaxed);
  }

 private:
  static constexpr int least_patience = 3, most_patience = 1 << 10;   // waits
  // Of all threads that wait, usually one: what they miss of each other only makes it later or earlier.
  std::atomic<int> late_{0};
  std::atomic<int> patience_{least_patience};
};

}  // namespace medley::core

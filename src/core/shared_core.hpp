// Remembers from wait to wait whether yielding gives the core away to somebody who keeps it: another program, a rank that
// computes, or the very peer while other cores are free, where the kernel may leave the two for good (25 us a 4-byte
// all_reduce over torch instead of 3). Used by the engine's waits, which then sleep instead: who is woken comes to a free core.
#pragma once

#include <algorithm>
#include <atomic>

namespace medley::core {

class SharedCore {
 public:
  /// A yield came back late: the next wait sleeps instead, twice as many each time that it happens again.
  void taken() noexcept {
    const int sleeps = sleeps_.load(std::memory_order_relaxed);
    left_.store(sleeps, std::memory_order_relaxed);
    sleeps_.store(std::min(sleeps * 2, most_sleeps), std::memory_order_relaxed);
  }
  /// A yield came back at once.
  void own() noexcept { sleeps_.store(1, std::memory_order_relaxed); }
  /// Asked once in a wait, before it would yield.
  bool sleep_rather() noexcept {
    const int left = left_.load(std::memory_order_relaxed);
    if (left > 0) left_.store(left - 1, std::memory_order_relaxed);
    return left > 0;
  }

 private:
  static constexpr int most_sleeps = 64;
  // Of all threads that wait, usually one: what they miss of each other only makes it more or fewer.
  std::atomic<int> left_{0};     ///< waits that are still to sleep
  std::atomic<int> sleeps_{1};   ///< how many are to, the next time
};

}  // namespace medley::core

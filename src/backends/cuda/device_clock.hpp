// Converts device event times to the host's clock: timing events use the device's own clock, and an event that the host
// saw completing ties it to the host's. Used by one context under its lock.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "backends/cuda/cuda.hpp"

namespace medley::cuda {

class DeviceClock {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  explicit DeviceClock(int device) : device_(device), stream_(in(device)), events_(device, EventPool::Times::yes) {
    origin_ = events_.take();
    trial_ = events_.take();
    tie();
  }
  ~DeviceClock() {
    events_.give_back(origin_);
    events_.give_back(trial_);
  }
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// The time of a completed event, recorded in any stream of the device.
  time_point when(cudaEvent_t event) {
    // Elapsed times are floats of milliseconds, and the clocks drift by microseconds a second.
    if (std::chrono::steady_clock::now() > next_tie_) tie();
    float elapsed = 0;
    check(cudaEventElapsedTime(&elapsed, origin_, event), "cudaEventElapsedTime");
    return origin_at_ + std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(elapsed) * 1e6));
  }

 private:
  static Stream in(int device) {
    const Scope scope(device);
    return Stream(Stream::Priority::high);
  }
  /// The moment is between recording an event and the query that found it complete: the shortest interval of a few
  /// attempts, or of more if the host was busy in all of them. If the device does not reach the event soon, the last
  /// moment is kept.
  void tie() {
    using std::chrono::steady_clock;
    const Scope scope(device_);
    const auto enough = steady_clock::now() + std::chrono::milliseconds(50);
    auto soonest = patience_;
    for (int attempt = 0; attempt < 3 || (soonest > std::chrono::microseconds(200) && steady_clock::now() < enough);
         ++attempt) {
      const auto begin = steady_clock::now();
      check(cudaEventRecord(trial_, stream_.get()), "cudaEventRecord");
      bool there = false;
      auto taken = std::chrono::nanoseconds(0);
      while (!there && taken < soonest) {
        there = reached(trial_);
        taken = steady_clock::now() - begin;
      }
      if (!there || taken >= soonest) continue;
      soonest = taken;
      origin_at_ = begin + taken / 2;
      std::swap(origin_, trial_);
    }
    if (origin_at_ == time_point{})
      throw Error(ErrorKind::system, "an empty stream of the CUDA device did not reach an event");
    patience_ = std::max<std::chrono::nanoseconds>(2 * soonest, std::chrono::microseconds(50));
    next_tie_ = steady_clock::now() + std::chrono::seconds(1);
  }

  int device_;
  Stream stream_;
  EventPool events_;
  cudaEvent_t origin_ = nullptr, trial_ = nullptr;
  time_point origin_at_{}, next_tie_{};
  std::chrono::nanoseconds patience_ = std::chrono::seconds(2);  ///< per attempt; later twice what one has taken
};

}  // namespace medley::cuda

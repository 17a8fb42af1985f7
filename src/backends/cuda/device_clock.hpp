// When things happened on a device, on the host's clock: events with times lie on the device's own clock, which an event that
// the host saw being reached ties to the host's. Used by one context under its lock.
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

  /// Of an event that was reached, recorded in any stream of the device.
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
  /// The moment lies between the record of an event and the look that found it reached, of a few attempts the soonest; of more where
  /// the host was busy with something else in all of them. Where the device does not come to it soon, the last moment stays.
  void tie() {
    using std::chrono::steady_clock;
    const Scope scope(device_);
    const auto enough = steady_clock::now() + std::chrono::milliseconds(50);
    auto soonest = patience_;
    for (int attempt = 0; attempt < 3 || (soonest > std::chrono::microseconds(200) && steady_clock::now() < enough); ++attempt) {
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
    if (origin_at_ == time_point{}) throw Error(ErrorKind::system, "an empty stream of the CUDA device did not reach an event");
    patience_ = std::max<std::chrono::nanoseconds>(2 * soonest, std::chrono::microseconds(50));
    next_tie_ = steady_clock::now() + std::chrono::seconds(1);
  }

  int device_;
  Stream stream_;
  EventPool events_;
  cudaEvent_t origin_ = nullptr, trial_ = nullptr;
  time_point origin_at_{}, next_tie_{};
  std::chrono::nanoseconds patience_ = std::chrono::seconds(2);   ///< with an attempt; later twice what one has taken
};

}  // namespace medley::cuda

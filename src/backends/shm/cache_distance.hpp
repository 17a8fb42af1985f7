// How fast this rank reads what a peer has just written: cores that share a cache transfer it three times as fast as
// cores that do not, and virtual cores migrate at run time. The exchanger measures it while it works.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>

#include <medley/sdk/pause.hpp>

namespace medley::shm {

class CacheDistance {
 public:
  static constexpr std::size_t probe_bytes = 8192;

  /// Times a read of probe_bytes that a peer wrote.
  void probe(const std::byte* written) {
    std::byte copy[2048];
    // Twice, so that one interruption does not count; in two pages, since a core prefetches within one.
    for (std::size_t at = 0; at < probe_bytes; at += probe_bytes / 2) {
      const auto before = std::chrono::steady_clock::now();
      std::memcpy(copy, written + at, sizeof copy);
      asm volatile("" : : "r"(copy) : "memory");  // the copy is the measurement
      await_loads();
      const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - before;
      rate_ = std::max(rate_ * fading, static_cast<double>(sizeof copy) / std::max(1.0, took.count()));
    }
  }
  /// Whether data goes through the segment rather than by direct reads of the peer's memory. On 2 ranks, 256 KiB to 64
  /// MiB, the segment was 1.3 to 2.3 times as fast at 17 to 29 bytes/ns, and took four times as long at 6 to 9.
  bool cache_local() const { return rate_ > 12 && distrust_ == 0; }

  /// A wait for a chunk took as long as a descheduled rank takes. Through the segment every chunk needs both sides
  /// running, so it is avoided for a while: 16 exchanges, twice as many each time, and half as many after each that
  /// went well.
  void stalled() {
    penalty_ = std::min(penalty_ * 2, 1024);
    distrust_ = penalty_;
  }
  void went_well() { penalty_ = std::max(penalty_ / 2, 8); }
  void next_exchange() { distrust_ = std::max(distrust_ - 1, 0); }

 private:
  static constexpr double fading = 0.93;  // without new samples, a rate is forgotten after some four exchanges
  double rate_ = 0;                       ///< bytes per ns
  int penalty_ = 8;                       ///< exchanges
  int distrust_ = 0;                      ///< exchanges left to avoid the segment
};

}  // namespace medley::shm

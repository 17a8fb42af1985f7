// Which of two ways the large broadcasts of a rank take in a comm of 2 or 3 ranks: direct reads, or through the
// segment. Which is faster depends on the processor and on which cores the ranks run, so the root times both on its own
// broadcasts. Used by the Exchanger.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace medley::shm {

/// For broadcasts of about one size.
class PathChoice {
 public:
  /// The way of the next one.
  bool segment() {
    if (measured_[0] < trials || measured_[1] < trials) return measured_[1] < measured_[0];
    return until_trial_-- > 0 ? segment_is_faster() : !segment_is_faster();
  }
  /// How fast one was, in bytes per ns, from when all ranks had arrived.
  void took(bool segment, double rate) {
    const bool before = segment_is_faster();
    double& known = rate_[segment ? 1 : 0];
    known = std::max(known * fading, rate);  // an interruption does not count, a lasting change does
    ++measured_[segment ? 1 : 0];
    if (segment_is_faster() != before) {
      interval_ = shortest_interval;
    } else if (segment != before) {  // the slower one has lost again
      interval_ = std::min(2 * interval_, longest_interval);
    }
    if (segment != before) until_trial_ = interval_;
  }

 private:
  // The slower way took up to four times as long where the two were compared: with the longest interval, trials cost
  // 0.3 %.
  static constexpr int trials = 2, shortest_interval = 16, longest_interval = 1024;
  static constexpr double fading = 0.9;
  bool segment_is_faster() const { return rate_[1] > rate_[0]; }

  std::array<double, 2> rate_{};  ///< direct, segment
  std::array<int, 2> measured_{};
  int interval_ = shortest_interval;
  int until_trial_ = shortest_interval;
};

/// By powers of two, from half a MiB to 64 MiB and more.
class PathChoices {
 public:
  static int bucket(std::size_t bytes) { return std::min(static_cast<int>(std::bit_width(bytes >> 19)), buckets - 1); }
  PathChoice& of(int bucket) { return choices_[static_cast<std::size_t>(bucket)]; }

 private:
  static constexpr int buckets = 9;
  std::array<PathChoice, buckets> choices_{};
};

}  // namespace medley::shm

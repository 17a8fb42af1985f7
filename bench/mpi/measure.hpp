// The loop around the sample clock: warms up, dirties the buffers before every sample, stops when the time is used.
// Used by the programs in this folder; `medley bench`, which interleaves routes, takes its samples with the same clock.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "tune/sample_clock.hpp"
#include "tune/statistics.hpp"

namespace medley::bench {

struct MeasureOptions {
  double seconds = 0.1;       ///< for one row, including dirtying
  int min_samples = 5;        ///< even when they take longer than `seconds`
  int max_samples = 100'000;  ///< bounds memory and time of very fast operations
  int batch = 1;              ///< operations per sample, back to back; 0 chooses so that a sample lasts 20 µs
};

struct Measured {
  std::vector<double> samples_us;  ///< the slowest rank's time of one operation, in the order taken
  double late_us = 0;              ///< median over samples: how late the last rank began
  int batch = 1;                   ///< operations per sample
};

/// Writes every element with plain stores, so that the lines end up in the writer's cache as after a
/// computation (memset would stream large buffers past the cache).
inline void dirty(std::span<float> buffer, float value) noexcept {
  for (float& element : buffer) element = value;
}

/// Samples `operation` until the time is used; `prepare` runs untimed before each sample and rewrites
/// the output, then the input. Collective: all decisions use values that every rank shares.
template <class Prepare, class Operation>
Measured measure(tune::SampleClock& clock, const MeasureOptions& options, Prepare&& prepare, Operation&& operation) {
  // First calls set up connections, map pages and probe; they get a tenth of the time, at least two
  // calls.
  std::vector<double> warm;
  std::int64_t first = 0;
  tune::Sample sample{};
  const auto used = [&] { return static_cast<double>(sample.released_ns - first) / 1e9; };
  do {
    prepare();
    sample = clock.time(operation);
    if (warm.empty()) first = sample.released_ns;
    warm.push_back(sample.us);
  } while (warm.size() < 2 || (used() < options.seconds / 10 && warm.size() < 1000));

  Measured measured;
  const double shortest = std::max(*std::min_element(warm.begin(), warm.end()), 0.02);
  measured.batch =
      options.batch > 0 ? options.batch : static_cast<int>(std::clamp(std::ceil(20 / shortest), 1., 1000.));

  std::vector<double> late;
  const auto enough = [&] {
    const int taken = static_cast<int>(measured.samples_us.size());
    return taken >= options.max_samples || (taken >= options.min_samples && used() >= options.seconds);
  };
  while (!enough()) {
    prepare();
    sample = clock.time(operation, measured.batch);
    measured.samples_us.push_back(sample.us);
    late.push_back(sample.late_us);
  }
  measured.late_us = tune::median(late);
  return measured;
}

}  // namespace medley::bench

// Latency and bandwidth of operations on the ranks of a context, for `medley bench`.
#pragma once

#include <cstddef>
#include <functional>
#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "tune/candidates.hpp"
#include "tune/job_clock.hpp"
#include "tune/statistics.hpp"
#include "tune/workload.hpp"

namespace medley::tune {

struct BenchOptions {
  std::vector<Op> ops;
  std::vector<std::size_t> sizes;
  Wanted wanted;
  std::vector<Counts> counts{Counts::uniform};  ///< of the v-collectives
  DType dtype = DType::f32;
  Memory memory = Memory::host;
  double seconds = 0;  ///< for all rows together; 0: a tenth of a second each
  int batch = 0;       ///< operations per sample; 0: enough for 20 µs
};

struct BenchRow {
  Op op{};
  std::string backend;
  std::string algorithm;
  Memory memory{};
  DType dtype{};
  Counts counts{};
  std::size_t bytes = 0;
  Summary time{};               ///< µs
  double algbw = 0, busbw = 0;  ///< GB/s
  std::size_t iterations = 0;
  int batch = 1;
  bool fastest = false;  ///< of its operation, size and counts
};

/// Measures every operation and size on every route, interleaving those of one size; `progress` receives the number of
/// cells done and the total. Collective; the rows are the same on all ranks.
std::vector<BenchRow> bench(Context& context, JobClock& clock, const BenchOptions& options,
                            const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace medley::tune

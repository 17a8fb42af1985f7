// Measures what a BenchRequest asks for on the GPU at hand, into CSV files, and turns them into a
// calibration. Used by `medley shape bench`; built only where CUDA is.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "shape/bench/gpu_bench.hpp"
#include "shape/bench_request.hpp"

namespace medley::shape {

struct BenchResult {
  GpuFacts gpu;
  std::size_t wanted = 0, measured = 0;
  double seconds = 0;
};

struct BenchEvents {
  std::function<void(const BenchResult& so_far)> progress;  ///< after every 64th product
  std::function<void(const Gemm&, const char* why)> skipped;
};

/// Throws medley::Error (unavailable) without a GPU, (invalid) where a file cannot be written.
MEDLEY_API BenchResult measure_gpu(const BenchRequest& request, const BenchEvents& events);
/// The calibration fitted to the files that measure_gpu() wrote, for write_calibration().
MEDLEY_API nlohmann::ordered_json calibrate_bench(const BenchRequest& request);

}  // namespace medley::shape

// Measures matrix products and memory-bound operations on the local GPU: L2 cold (buffers rotate), normally
// distributed data, medians of back-to-back launches. Used by `medley shape bench`; built only with CUDA.
#pragma once

#include <cstddef>
#include <medley/export.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cost/gemm.hpp"
#include "cost/gpu_model.hpp"
#include "shape/words.hpp"

namespace medley::shape {

struct GemmSample {
  Gemm gemm;
  double us = 0,
         mad_us = 0;  ///< median and deviation over groups of launches of the heuristics' first choice
  int algorithm = 0, tile = 0, stages = 0, split = 0, cluster = 0,
      swizzle = 0;       ///< cuBLASLt's numbers for it
  double clock_mhz = 0;  ///< SM clock during the measurement
  double best_us = 0;    ///< the fastest of best-of-N; 0: not tried
  int best_rank = 0;     ///< its rank in the heuristics' order, from 0
};

struct GpuFacts {
  std::string name, driver, cuda, cublas;
  int sms = 0;
  double memory_gb = 0, l2_mb = 0;
};

class MEDLEY_API GpuBench {
 public:
  /// Opens the first GPU; throws medley::Error (unavailable) with one sentence when there is none. `duty` is
  /// the share of time the GPU is busy: with pauses it stays near its boost clock, as in a job that waits for
  /// communication; at 1 the power limit slows large products by a tenth or more.
  explicit GpuBench(double duty = 0.5);
  ~GpuBench();
  const GpuFacts& facts() const noexcept;
  /// Empty when cuBLASLt does not offer the product (fp8 in NN or NT) or it exceeds the GPU's memory.
  std::optional<GemmSample> gemm(const Gemm& gemm, int best_of = 1);
  /// Median microseconds of `op` over rows×cols bf16, cols a multiple of 8 up to 32768.
  double stream(StreamOp op, std::size_t rows, int cols);
  /// SM and memory clock, power and temperature in nvidia-smi's words; empty without nvidia-smi.
  static std::string clocks();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes the times of fused attention as PyTorch's scaled_dot_product_attention runs it (FlashAttention 2
/// and cuDNN), forward and backward, to `csv`: neither has a stable C++ library. Needs a python3 with torch;
/// returns whether rows were written, and reports on stderr why not.
MEDLEY_API bool measure_attention(const std::string& csv, double seconds);

/// Bytes that `stream` moves: rows×cols elements read (twice for two inputs) and written.
MEDLEY_API double stream_bytes(StreamOp op, std::size_t rows, int cols);

}  // namespace medley::shape

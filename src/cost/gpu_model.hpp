// Predicts how long a GPU takes for a GEMM, an attention kernel or a memory-bound operation, and where time
// is lost. Calibrated from a measured sweep where one ships (h200-sxm), from the datasheet otherwise. Used by
// the advisor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cost/gemm.hpp"
#include "cost/gpu.hpp"
#include "cost/words.hpp"

namespace medley::cost {

inline constexpr int calibration_format = 1;  ///< of the files, as "format"; docs/formats.md has their history

/// Microseconds above the ideal time (flops at the GPU's best measured rate), by cause. Never negative.
struct GemmLosses {
  double alignment = 0;  ///< relative to the same product with every contiguous extent a multiple of 64
  double tile = 0;       ///< part of the edge tiles' work is thrown away
  double wave = 0;       ///< multiprocessors idle in the last wave
  double memory = 0;     ///< waiting for HBM in excess of the arithmetic
  double launch = 0;     ///< start, pipeline fill and drain, reduction of split-k
};

struct GemmTime {
  double us = 0;
  double tflops = 0;
  double efficiency = 0;  ///< tflops over the GPU's best measured dense rate for the type
  GemmLosses lost;
  std::string kernel;  ///< the tile and split that the model expects the library to use, such as "128x256 split 1"

  /// The largest cause: "alignment", "tile", "wave", "memory", "launch", or "none" when under 5 % is lost.
  std::string_view lost_to() const noexcept;
};

/// One fused attention over batch × heads.
struct Attention {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, seq_q = 0, seq_k = 0, head_dim = 0;
  bool causal = true;
  double share = 1;               ///< share of the query-key pairs: less than 1 with a window
  double flops() const noexcept;  ///< forward: share · 4·b·a·sq·sk·d, halved when causal
};

class GpuModel {
 public:
  /// The model of a GPU by name; throws medley::Error (invalid) listing the names.
  static GpuModel named(std::string_view gpu);
  explicit GpuModel(const Gpu& gpu);  ///< from the datasheet: uncalibrated
  /// With the text of a calibration file; `source` opens the error messages.
  GpuModel(const Gpu& gpu, std::string_view calibration, std::string_view source = "calibration");

  const Gpu& gpu() const noexcept;
  bool calibrated() const noexcept;
  std::string provenance() const;                    ///< one line: date, driver and library versions, or "datasheet"
  double peak_tflops(GemmType type) const noexcept;  ///< best dense rate, measured where calibrated
  double bandwidth_gb_per_s() const noexcept;        ///< likewise for HBM

  GemmTime predict(const Gemm& gemm) const;
  double predict_us(const Gemm& gemm) const;  ///< the time only, without losses, for searches
  /// The same inside a layer that keeps the GPU busy: predict_us() is a burst near the boost clock, which
  /// dense products cannot hold under the power limit.
  double sustained_us(const Gemm& gemm) const;
  /// The share of a batched product's rate that a grouped product (experts with equal numbers of tokens)
  /// reaches.
  double grouped_share() const noexcept;
  double roofline_us(const Gemm& gemm) const;  ///< max(flops/peak, bytes/bandwidth), for comparison
  double attention_us(const Attention& attention, bool backward,
                      AttentionKernel kernel = AttentionKernel::cudnn) const;  ///< flash or cudnn
  double stream_us(StreamOp op, double bytes) const;                           ///< bytes read plus written, each once

  struct State;

 private:
  std::shared_ptr<const State> state_;
};

inline GemmTime predict(const GpuModel& model, const Gemm& gemm) { return model.predict(gemm); }

}  // namespace medley::cost

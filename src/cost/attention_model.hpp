// Time of fused attention, forward and backward: a share of the GEMM rate from the datasheet, or fitted to
// measurements. Part of the GPU model; its calibration comes from bench/shape/torch_bench.py.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cost/gpu_model.hpp"
#include "cost/tile_model.hpp"
#include "cost/trees.hpp"

namespace medley::cost {

struct MeasuredAttention {
  AttentionKernel kernel = AttentionKernel::flash;
  Attention attention;
  double forward_us = 0, backward_us = 0;
};
/// CSV with columns backend,b,heads,kv,s,d,causal,forward_us,backward_us; rows of other backends are skipped.
std::vector<MeasuredAttention> read_attention_csv(const std::string& path);

class AttentionModel {
 public:
  explicit AttentionModel(const TileConstants& constants);
  AttentionModel(const TileConstants& constants, const nlohmann::json& calibration);
  double us(const Attention& attention, bool backward, AttentionKernel kernel) const;

  /// The `attention` part of a calibration file.
  static nlohmann::json fit(const TileConstants& constants, const std::vector<MeasuredAttention>& samples);

 private:
  double base_us(const Attention& attention, bool backward) const;
  double peak_tflops_ = 0, launch_us_ = 0;
  std::array<Trees, 4> corrections_;  ///< flash forward and backward, cuDNN forward and backward
};

}  // namespace medley::cost

// The numbers of the cost model that no datasheet gives: where each comes from stands beside it and in
// docs/plan-time.md. `fitted` ones are found by `medley plan calibrate`; the others are published figures.
#pragma once

#include <array>
#include <string_view>

namespace medley::plan {

struct CostConstants {
  // Published figures and values of the shape room's GPU model.
  double matmul_share = 0.8;    ///< of the datasheet's FLOP/s, where gpus.csv has no measured maximum
  double tile_128 = 0.9;        ///< rate of 128×128 tiles against 256×128: they load operands more often
  double tile_64 = 0.75;        ///< … and for each further halving
  double inside_share = 0.78;   ///< of NVLink that NCCL reaches: 235 of 300 GB/s on A100 (nccl-tests)
  double between_share = 0.92;  ///< of InfiniBand that NCCL reaches: 185 of 200 GB/s a host (DGX A100)
  double memory_share =
      0.8;  ///< of HBM bandwidth that streaming kernels reach (A100 1.6 of 2.0 TB/s, fused Adam)
  double flash_share = 0.6;           ///< of the best matmul rate that FlashAttention-2 reaches forward
  double flash_backward_share = 0.5;  ///< … and backward
  /// Rate when a contiguous extent is no multiple of 8 elements: the co-design paper's A100 measurements, 95
  /// against 205 TFLOP/s.
  double misaligned_share = 0.46;

  // Fitted on the fit half of vTrain's single-node table (see split() in calibrate.hpp).
  double k_ramp = 498;   ///< elements of k that a tile loses to filling and draining its pipeline
  double kernel_us = 8;  ///< fixed GPU time of an entry: starts and tails of its kernels
  double forward_issue_us =
      162;  ///< host time to issue one entry of a forward pass: Python calls its kernels
  double backward_issue_us = 55.9;  ///< … of a backward pass: autograd calls them from C++
  double collective_us = 47.9;      ///< fixed time of one collective
  double layer_passes =
      1.44;  ///< memory traffic of norms, dropout, softmax, …, against the least they could cause
  double loss_passes = 5.3;  ///< over the logits, against the least a cross entropy could do
  double step_us = 43;       ///< once a step: data loading, loss scale, logging
};

/// One constant as a row of the table that the fit walks and the documentation shows.
struct ConstantRow {
  std::string_view name;
  double CostConstants::*member;
  bool fitted;
};

inline constexpr std::array<ConstantRow, 17> constant_rows{{
    {"matmul_share", &CostConstants::matmul_share, false},
    {"tile_128", &CostConstants::tile_128, false},
    {"tile_64", &CostConstants::tile_64, false},
    {"inside_share", &CostConstants::inside_share, false},
    {"between_share", &CostConstants::between_share, false},
    {"memory_share", &CostConstants::memory_share, false},
    {"flash_share", &CostConstants::flash_share, false},
    {"flash_backward_share", &CostConstants::flash_backward_share, false},
    {"misaligned_share", &CostConstants::misaligned_share, false},
    {"k_ramp", &CostConstants::k_ramp, true},
    {"kernel_us", &CostConstants::kernel_us, true},
    {"forward_issue_us", &CostConstants::forward_issue_us, true},
    {"backward_issue_us", &CostConstants::backward_issue_us, true},
    {"collective_us", &CostConstants::collective_us, true},
    {"layer_passes", &CostConstants::layer_passes, true},
    {"loss_passes", &CostConstants::loss_passes, true},
    {"step_us", &CostConstants::step_us, true},
}};

}  // namespace medley::plan

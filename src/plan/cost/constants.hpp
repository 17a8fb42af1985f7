// The numbers of the cost model that no datasheet gives: where each comes from stands beside it and in
// docs/plan-time.md. `fitted` ones are found by `medley plan calibrate`; the others are published or counted.
#pragma once

#include <array>
#include <string_view>

namespace medley::plan {

struct CostConstants {
  // Published or counted.

  /// Of the datasheet's FLOP/s, where gpus.csv has no measured maximum.
  double matmul_share = 0.8;
  /// Elements of k that a tile loses to filling its pipeline: four stages of 32.
  double k_ramp = 128;
  /// Rate of 128×128 tiles against 256×128 (they load operands more often), and of each further halving.
  double tile_128 = 0.9, tile_64 = 0.75;
  /// Rate when a contiguous extent is no multiple of 8 elements: 95 against 205 TFLOP/s on A100 (co-design
  /// paper).
  double misaligned_share = 0.46;
  /// Of the best matmul rate that FlashAttention-2 reaches, forward and backward.
  double flash_share = 0.6, flash_backward_share = 0.5;
  /// Of HBM bandwidth that streaming kernels reach: 1.6 of 2.0 TB/s on A100.
  double memory_share = 0.8;
  /// Traffic of norms, dropout and residuals against the least they could cause: masks, bias gradients, the
  /// second pass of a norm's weight gradients (counted from Megatron's kernels).
  double layer_passes = 1.35;
  /// Of NVLink that NCCL reaches: 235 of 300 GB/s on A100 (nccl-tests).
  double inside_share = 0.78;
  /// Of InfiniBand that NCCL reaches: 185 of 200 GB/s a host (nccl-tests, DGX A100).
  double between_share = 0.92;

  // Fitted on the fit half of vTrain's single-node table (split() in calibrate.hpp).

  /// Fixed GPU time of an entry: starts and tails of its kernels.
  double kernel_us = 44;
  /// Host time to issue one entry: of a forward pass, whose kernels Python calls, and of a backward pass,
  /// where autograd calls them from C++.
  double forward_issue_us = 99.5, backward_issue_us = 109.3;
  /// Fixed time of one collective.
  double collective_us = 37.1;
  /// Passes over the logits, against the least a cross entropy could do.
  double loss_passes = 6.64;
  /// Once a step: data loading, loss scale, logging.
  double step_us = 100;
};

/// One constant as a row of the table that the fit walks and the documentation shows.
struct ConstantRow {
  std::string_view name;
  double CostConstants::*member;
  bool fitted;
};

inline constexpr std::array<ConstantRow, 17> constant_rows{{
    {"matmul_share", &CostConstants::matmul_share, false},
    {"k_ramp", &CostConstants::k_ramp, false},
    {"tile_128", &CostConstants::tile_128, false},
    {"tile_64", &CostConstants::tile_64, false},
    {"misaligned_share", &CostConstants::misaligned_share, false},
    {"flash_share", &CostConstants::flash_share, false},
    {"flash_backward_share", &CostConstants::flash_backward_share, false},
    {"memory_share", &CostConstants::memory_share, false},
    {"layer_passes", &CostConstants::layer_passes, false},
    {"inside_share", &CostConstants::inside_share, false},
    {"between_share", &CostConstants::between_share, false},
    {"kernel_us", &CostConstants::kernel_us, true},
    {"forward_issue_us", &CostConstants::forward_issue_us, true},
    {"backward_issue_us", &CostConstants::backward_issue_us, true},
    {"collective_us", &CostConstants::collective_us, true},
    {"loss_passes", &CostConstants::loss_passes, true},
    {"step_us", &CostConstants::step_us, true},
}};

}  // namespace medley::plan

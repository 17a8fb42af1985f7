// The numbers of the cost model that no datasheet gives: where each comes from stands beside it and in
// docs/plan-time.md. `fitted` ones are found by `medley plan calibrate`; the others are published figures.
#pragma once

#include <array>
#include <string_view>

namespace medley::plan {

struct CostConstants {
  // Published figures.
  double matmul_share = 0.8;   ///< of the datasheet's FLOP/s, where gpus.csv has no measured maximum
  double inside_share = 0.78;  ///< of NVLink that NCCL reaches: 235 of 300 GB/s on A100 (nccl-tests)
  double between_share =
      0.92;  ///< of InfiniBand that NCCL reaches: 185 of 200 GB/s a host (nccl-tests, DGX A100)
  double flash_share = 0.6;           ///< of the measured matmul rate that FlashAttention-2 reaches forward
  double flash_backward_share = 0.5;  ///< … and backward

  // Fitted on the even rows of vTrain's single-node table.
  double k_ramp = 300;     ///< elements of k that a tile loses to filling and draining its pipeline
  double tile_128 = 0.85;  ///< rate of 128×128 tiles against 256×128
  double tile_64 = 0.75;   ///< … and for each further halving
  double misaligned_share =
      0.45;  ///< rate when a contiguous extent is no multiple of 8 elements (vocabulary 50257)
  double memory_share = 0.75;  ///< of HBM bandwidth that memory-bound kernels reach
  double forward_issue_us =
      120;  ///< host time to issue one entry of a forward pass (Python calls every kernel of it)
  double backward_issue_us = 70;  ///< … of a backward pass (autograd calls them from C++)
  double collective_us = 60;      ///< fixed time of one collective, launch and synchronisation included
  double loss_passes = 2;         ///< over the logits, against the least a cross entropy could do
  double step_us = 1000;          ///< once a step: data loading, loss scale, logging
};

/// One constant as a row of the table that the fit walks and the documentation shows.
struct ConstantRow {
  std::string_view name;
  double CostConstants::*member;
  bool fitted;
};

inline constexpr std::array<ConstantRow, 15> constant_rows{{
    {"matmul_share", &CostConstants::matmul_share, false},
    {"inside_share", &CostConstants::inside_share, false},
    {"between_share", &CostConstants::between_share, false},
    {"flash_share", &CostConstants::flash_share, false},
    {"flash_backward_share", &CostConstants::flash_backward_share, false},
    {"k_ramp", &CostConstants::k_ramp, true},
    {"tile_128", &CostConstants::tile_128, true},
    {"tile_64", &CostConstants::tile_64, true},
    {"misaligned_share", &CostConstants::misaligned_share, true},
    {"memory_share", &CostConstants::memory_share, true},
    {"forward_issue_us", &CostConstants::forward_issue_us, true},
    {"backward_issue_us", &CostConstants::backward_issue_us, true},
    {"collective_us", &CostConstants::collective_us, true},
    {"loss_passes", &CostConstants::loss_passes, true},
    {"step_us", &CostConstants::step_us, true},
}};

}  // namespace medley::plan

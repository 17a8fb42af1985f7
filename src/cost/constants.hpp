// The constants of the cost model that no datasheet gives. The source of each is given beside it and in
// docs/plan-time.md. `medley plan calibrate` finds the `fitted` ones; the others are published or counted.
#pragma once

#include <array>
#include <string_view>

#include "plan/framework.hpp"

namespace medley::cost {

struct CostConstants {
  // Published or counted.

  /// The share of FlashAttention 2's rate that the Triton kernel of 2023 reaches (attention=flash1).
  double flash1_share = 0.45;
  /// The share of NVLink that NCCL's rings reach: 235 of 300 GB/s on A100, 360 of 450 on H100 (nccl-tests).
  double inside_share = 0.78;
  /// The share of InfiniBand that NCCL reaches: 185 of 200 GB/s per host (nccl-tests, DGX A100).
  double between_share = 0.92;
  /// How much kernels slow down while they overlap a collective, whose kernels take multiprocessors and
  /// bandwidth (NCCL's 16 to 32 of 132 channels).
  double overlap_slowdown = 0.25;
  /// The host time of issuing a collective or message, in kernels.
  double comm_kernels = 1;

  // Fitted; docs/plan-time.md says to what.

  /// GPU idle time between two kernels: start, tail and dependency.
  double gap_us = 2.5, megatron_gap_us = 2.5;
  /// Host time to issue one kernel: PyTorch eagerly, compiled, Megatron, nanotron.
  double eager_us = 55, compiled_us = 12, megatron_us = 29, nanotron_us = 30;
  /// Host time of one kernel in a loop over tensors outside autograd (copies, sums, scalings).
  double loop_us = 8;
  /// Host time per step that the GPU need not wait for while it has work: optimizer, zeroing gradients, data
  /// (PyTorch).
  double host_step_us = 8500;
  /// Fixed time of one collective and of one message between stages.
  double collective_us = 15, message_us = 30;
  /// With TORCH_DISTRIBUTED_DEBUG=DETAIL, every collective first runs a barrier and a comparison over Gloo,
  /// in which rank 0 answers one rank after the other: host time per rank of the group.
  double debug_check_us = 240;
  /// Passes over the logits, relative to the number counted for the loss kernels.
  double loss_passes = 1.0;
  /// Per step: data loading, loss scale, logging.
  double step_us = 500;

  /// GPU time between two kernels of this framework: Megatron of 2022 had many small kernels that are not in
  /// the schedule.
  double idle_us(plan::Framework framework, const plan::Flags& flags) const noexcept {
    const bool megatron = framework == plan::Framework::megatron || framework == plan::Framework::neox;
    return (megatron ? megatron_gap_us : gap_us) * (flags.cuda_graphs ? 0.5 : 1.0);
  }
  /// Host time per kernel of this framework.
  double host_us(plan::Framework framework, const plan::Flags& flags) const noexcept {
    using plan::Framework;
    if (flags.cuda_graphs) return 0;
    if (flags.compile) return compiled_us;
    switch (framework) {
      case Framework::megatron:
      case Framework::neox: return megatron_us;
      case Framework::nanotron: return nanotron_us;
      default: return eager_us;
    }
  }
};

/// One constant as a row of the table that the fit iterates over and the documentation shows.
struct ConstantRow {
  std::string_view name;
  double CostConstants::*member;
  bool fitted;
};

inline constexpr std::array<ConstantRow, 18> constant_rows{{
    {"flash1_share", &CostConstants::flash1_share, false},
    {"inside_share", &CostConstants::inside_share, false},
    {"between_share", &CostConstants::between_share, false},
    {"overlap_slowdown", &CostConstants::overlap_slowdown, false},
    {"comm_kernels", &CostConstants::comm_kernels, false},
    {"gap_us", &CostConstants::gap_us, true},
    {"megatron_gap_us", &CostConstants::megatron_gap_us, true},
    {"eager_us", &CostConstants::eager_us, true},
    {"compiled_us", &CostConstants::compiled_us, true},
    {"megatron_us", &CostConstants::megatron_us, true},
    {"nanotron_us", &CostConstants::nanotron_us, true},
    {"loop_us", &CostConstants::loop_us, true},
    {"host_step_us", &CostConstants::host_step_us, true},
    {"collective_us", &CostConstants::collective_us, true},
    {"message_us", &CostConstants::message_us, true},
    {"debug_check_us", &CostConstants::debug_check_us, true},
    {"loss_passes", &CostConstants::loss_passes, true},
    {"step_us", &CostConstants::step_us, true},
}};

}  // namespace medley::cost

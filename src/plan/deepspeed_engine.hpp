// DeepSpeed's training engine around a model: pipeline schedule, ZeRO stages, scalar reductions. The
// deepspeed and neox frameworks are this engine with different rules.
#pragma once

#include "plan/zero.hpp"

namespace medley::plan {

struct EngineRules {
  Framework framework = Framework::deepspeed;
  TensorRules tensor;
  ViewOptions view;
  bool sends_mask = false;       ///< NeoX passes its attention mask from stage to stage, as f16
  bool broadcasts_data = false;  ///< tensor rank 0 reads the data: sizes, then tokens
  int parameter_groups = 1;      ///< optimizer groups, each gathered separately after a ZeRO step
};

Schedule engine_schedule(const Model& model, const Layout& layout, Count rank, const EngineRules& rules);

/// DeepSpeed's TrainSchedule: the instructions of one stage, in order.
enum class Instruction : std::uint8_t { recv_activation, send_activation, recv_grad, send_grad, forward, backward };
struct Command {
  Instruction what;
  Count micro_batch;
};
std::vector<Command> train_schedule(int stage, int stages, Count micro_batches);

}  // namespace medley::plan

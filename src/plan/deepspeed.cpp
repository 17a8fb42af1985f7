// DeepSpeed: ZeRO around a plain PyTorch model; with tp and pp, Megatron-DeepSpeed (Megatron's tensor
// parallel layers).
#include "plan/deepspeed_engine.hpp"

namespace medley::plan {

Schedule deepspeed_schedule(const Model& m, const Layout& l, Count rank) {
  EngineRules rules;
  rules.framework = Framework::deepspeed;
  rules.tensor.regather = rules.tensor.async_backward = true;
  rules.tensor.expert_tensor = rules.tensor.routing_traffic =
      false;  // DeepSpeed-MoE drops duplicate tokens over tp and exchanges capacity-sized buffers
  rules.tensor.reduce_dtype = l.dtype;
  rules.view.fuse_projections = rules.view.pad_vocabulary = l.tp > 1;  // as Megatron's layers do
  rules.tensor.drops_duplicates = rules.view.whole_experts = true;
  rules.broadcasts_data = l.tp > 1;
  return engine_schedule(m, l, rank, rules);
}

}  // namespace medley::plan

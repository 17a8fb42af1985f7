// GPT-NeoX: an early Megatron's tensor parallel layers (nothing asynchronous, gathered inputs kept) under
// DeepSpeed's pipeline and ZeRO. It sends the attention mask along the pipeline and has two parameter groups
// (decayed or not).
#include "plan/deepspeed_engine.hpp"

namespace medley::plan {

Schedule neox_schedule(const Model& m, const Layout& l, Count rank) {
  if (l.cp > 1) refuse(Framework::neox, "cp above 1 is not supported here; use deepspeed or megatron");
  EngineRules rules;
  rules.framework = Framework::neox;
  rules.tensor.one_reduction = true;
  rules.tensor.expert_tensor = rules.tensor.routing_traffic = false;
  rules.tensor.reduce_dtype = l.flags.fp32_allreduce && l.dtype == DType::bf16 ? DType::f32 : l.dtype;
  rules.view.fuse_projections = rules.view.pad_vocabulary = true;
  rules.sends_mask = true;
  rules.tensor.drops_duplicates = rules.view.whole_experts = true;
  rules.broadcasts_data = true;
  rules.parameter_groups = 2;
  return engine_schedule(m, l, rank, rules);
}

}  // namespace medley::plan

#include "plan/memory.hpp"

#include <algorithm>

#include "plan/view.hpp"

namespace medley::plan {
namespace {

// Activations that one layer keeps for its backward pass, after Korthikanti et al. (2022): for a GPT in 16
// bits s·b·h·(10 + 24/t + 5·a·s/(h·t)), with widths of gated and grouped-query models put in.
Count layer_activations(const View& v, bool moe) {
  const Layout& l = v.layout;
  const Count plane = product({v.sharded_tokens, v.model.hidden}, "activation");
  if (l.recompute == Recompute::full) return product({plane, v.e});
  const Count heads = v.local.heads, tokens = v.tokens;
  const Count qkv =
      product({tokens,
               sum(product({heads, v.model.query_head_dim()}),
                   product({v.local.kv_heads, v.model.query_head_dim() + v.model.value_head_dim()})),
               v.e});
  const Count context = product({tokens, heads, v.model.value_head_dim(), v.e});
  const bool dropout = v.model.norm == Norm::layer;  // RMSNorm families train without
  Count bytes = sum(qkv, context);
  bytes = sum(bytes, product({plane, 4, v.e}));          // inputs of two norms, of QKV and of the MLP
  if (dropout) bytes = sum(bytes, product({plane, 2}));  // one-byte masks
  if (!l.flags.flash_attention && l.recompute == Recompute::none) {
    bytes =
        sum(bytes, product({l.micro_batch, heads, v.sequence, v.sequence, 2 * v.e + 1}, "attention scores"));
  }
  const Count wide =
      moe ? product({v.routed_tokens(), v.local.moe_ffn, l.tp}) : product({tokens, v.local.ffn});
  bytes = sum(bytes, product({wide, v.model.gated ? 3 : 2, v.e}));
  if (moe) bytes = sum(bytes, product({v.routed_tokens(), v.model.hidden, v.e}));
  if (moe) bytes = sum(bytes, product({tokens, v.local.shared_ffn, v.model.gated ? 3 : 2, v.e}));
  return bytes;
}

// Micro-batches whose activations this stage holds at once, in passes of one chunk.
Count passes_in_flight(const View& v) {
  const Layout& l = v.layout;
  const Count passes = product({v.micro_batches, l.virtual_stages}, "micro-batches");
  if (l.pp == 1) return 1;
  if (l.pipeline == PipelineKind::gpipe) return passes;
  const Count ahead = l.pp - v.at.pp - 1;
  return std::min(passes,
                  l.virtual_stages > 1 ? 2 * ahead + Count{l.virtual_stages - 1} * l.pp + 1 : ahead + 1);
}

Count activations(const View& v) {
  Count kept = 0, chunk_layers = 0;
  for (const Chunk& chunk : v.chunks) {
    for (Count i = chunk.first; i < chunk.first + chunk.count; ++i)
      kept = sum(kept, layer_activations(v, v.model.moe_layer(i)));
    chunk_layers += chunk.count;
  }
  if (chunk_layers == 0) return 0;
  const Count per_pass = ceil_div(kept, static_cast<Count>(v.chunks.size()));
  Count bytes = product({per_pass, passes_in_flight(v)}, "activations");
  if (v.layout.recompute == Recompute::full) {
    // While one layer is recomputed all it keeps is there.
    Layout whole = v.layout;
    whole.recompute = Recompute::none;
    bytes = sum(bytes, layer_activations(View(v.model, whole, v.rank), v.model.moe_layer(v.chunks[0].first)));
  }
  if (v.chunks.back().head) bytes = sum(bytes, product({v.tokens, v.local.vocab, 4}, "logits"));
  return bytes;
}

}  // namespace

Memory memory_per_gpu(const Model& m, const Layout& layout, Framework framework, Count rank) {
  const Layout l = as_run_by(layout, framework);
  const bool megatron = framework == Framework::megatron;
  const View v(m, l, rank,
               {.pad_vocabulary = megatron || framework == Framework::neox,
                .fuse_projections = false,
                .whole_layers = false});
  const auto tensors = v.tensors();
  const int zero = framework == Framework::fsdp2 ? 3 : l.zero;
  const DType grad = l.grad_dtype.value_or(megatron && l.dtype == DType::bf16 ? DType::f32 : l.dtype);
  // Adam keeps two f32 moments, and an f32 copy of parameters that are narrower.
  const Count state = l.dtype == DType::f32 ? 8 : 12;
  Memory memory;
  for (const bool expert : {false, true}) {
    const Count all = elements(tensors, expert), replicas = (expert ? v.expert_dp_group : v.dp_group) /
                                                            (framework == Framework::fsdp2 ? l.hsdp : 1);
    const auto share = [&](bool cut) { return cut ? ceil_div(all, std::max<Count>(1, replicas)) : all; };
    memory.parameters = sum(memory.parameters, product({share(zero >= 3), v.e}, "parameters"));
    memory.gradients =
        sum(memory.gradients, product({share(zero >= 2), static_cast<Count>(size_of(grad))}, "gradients"));
    memory.optimizer = sum(memory.optimizer, product({share(zero >= 1), state}, "optimizer state"));
  }
  memory.activations = activations(v);
  return memory;
}

}  // namespace medley::plan

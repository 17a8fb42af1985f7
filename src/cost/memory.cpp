#include "cost/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "plan/frameworks.hpp"
#include "plan/view.hpp"

namespace medley::cost {
namespace {

constexpr double usable_share = 0.94;

// Activations that one layer keeps for its backward pass, after Korthikanti et al. (2022): for a GPT in 16
// bits s·b·h·(10 + 24/t + 5·a·s/(h·t)), adapted to the widths of gated and grouped-query models. In eager
// mode, chains of kernels also keep their intermediate results: rotated queries and keys, the gate's
// activation.
Count kept_activations(const View& v, LayerKind kind) {
  const Layout& l = v.layout;
  const bool moe = kind.moe;
  const bool eager = !l.flags.fused_kernels;
  const Count plane = product({v.sharded_tokens, v.model.hidden}, "activation");
  if (l.recompute == Recompute::full) return product({plane, v.e});
  const Count heads = v.local.heads, tokens = v.tokens;
  const Count qk = product(
      {tokens, sum(product({heads, v.model.query_head_dim()}), product({v.local.kv_heads, v.model.query_head_dim()})),
       v.e});
  const Count values = product({tokens, v.local.kv_heads, v.model.value_head_dim(), v.e});
  const Count context = product({tokens, heads, v.model.value_head_dim(), v.e});
  Count bytes = sum(sum(qk, values), context);
  if (eager && v.model.positions == Positions::rotary) bytes = sum(bytes, qk);
  // inputs of two norms, of QKV and of the MLP; the last two are the norms' outputs
  bytes = sum(bytes, product({plane, l.flags.recompute_modules.norms ? 2 : 4, v.e}));
  if (l.flags.dropout.value_or(false)) bytes = sum(bytes, product({plane, 2}));  // one-byte masks
  if (!l.flags.flash_attention && l.recompute == Recompute::none) {
    bytes = sum(bytes, product({l.micro_batch, heads, v.sequence, v.sequence, 2 * v.e + 1}, "attention scores"));
  }
  Count kept = v.model.gated ? (eager ? 4 : 3) : 2;
  // gate and up before and after their clamps
  if (moe && v.model.clamped_gate && !l.flags.fused_grouped_mlp) kept += 2;
  if (moe && l.flags.recompute_modules.expert_activation) kept = 2;
  // A rank computes the whole width for its own tokens, or a slice for those of all ranks that share the
  // expert.
  const Count wide = moe ? product({v.routed_tokens(), v.model.moe_ffn}) : product({tokens, v.local.ffn});
  bytes = sum(bytes, product({wide, kept, v.e}));
  if (moe) bytes = sum(bytes, product({v.routed_tokens(), v.model.hidden, 2 * v.e}));
  if (moe) bytes = sum(bytes, product({tokens, v.local.shared_ffn, kept, v.e}));
  return bytes;
}

// Per operation, every second product is kept, and no element-wise result.
Count layer_activations(const View& v, LayerKind kind) {
  const Count kept = kept_activations(v, kind);
  return v.layout.recompute == Recompute::per_op ? kept / 2 : kept;
}

// Micro-batches whose activations this stage holds at once, in passes of one chunk.
Count passes_in_flight(const View& v) {
  const Layout& l = v.layout;
  const Count passes = product({v.micro_batches, l.virtual_stages}, "micro-batches");
  if (l.pp == 1) return 1;
  if (l.pipeline == PipelineKind::gpipe) return passes;
  const Count ahead = l.pp - v.at.pp - 1;
  return std::min(passes, l.virtual_stages > 1 ? 2 * ahead + Count{l.virtual_stages - 1} * l.pp + 1 : ahead + 1);
}

Count activations(const View& v) {
  Count kept = 0, chunk_layers = 0;
  for (const Chunk& chunk : v.chunks) {
    for (Count i = chunk.first; i < chunk.first + chunk.count; ++i)
      kept = sum(kept, layer_activations(v, v.model.kind(i)));
    chunk_layers += chunk.count;
  }
  if (chunk_layers == 0) return 0;
  const Count per_pass = ceil_div(kept, static_cast<Count>(v.chunks.size()));
  Count bytes = product({per_pass, passes_in_flight(v)}, "activations");
  if (v.layout.recompute == Recompute::full) {
    // While a layer is recomputed, all its activations exist.
    Layout whole = v.layout;
    whole.recompute = Recompute::none;
    bytes = sum(bytes, layer_activations(View(v.model, whole, v.rank), v.model.kind(v.chunks[0].first)));
  }
  // Under sequence parallelism the current layer holds its input gathered again, the gathered gradient of its
  // output and its input gradient before the scatter, each whole.
  if (v.layout.sp) bytes = sum(bytes, product({3, v.tokens, v.model.hidden, v.e}, "activation"));
  // Between forward and backward: logits in 16 bits and in f32, their log-softmax and their gradient; when
  // fused, one f32 copy less.
  if (v.chunks.back().head)
    bytes = sum(bytes, product({v.tokens, v.local.vocab, v.layout.flags.fused_kernels ? 10 : 14}, "logits"));
  return bytes;
}

// nanotron's asynchronous tensor-parallel collectives record their whole tensors on NCCL's stream, so the
// allocator gets these back only when the GPU has run them. Without a pipeline, whose messages wait on the
// host, the host is ahead by as much as the launch queue holds: 1,024 kernels, about 46 such tensors (the
// playbook's rows on 4 to 16 tensor ranks: 40 to 55).
Count run_ahead(const View& v) {
  if (v.layout.pp > 1 || v.layout.tp == 1 || !v.layout.sp) return 0;
  const Count tensors = std::min<Count>(46, 3 * v.model.layers / 2);
  return product({tensors, v.tokens, v.model.hidden, v.e}, "activations");
}

// Keys and values of every cached token, or of those in the window; latent attention keeps one compressed
// vector per token instead.
Count cache_bytes(const View& v) {
  const Model& m = v.model;
  const Count length = v.layout.mode == Mode::decode ? v.cached : v.sequence;
  Count bytes = 0;
  for (const Chunk& chunk : v.chunks)
    for (Count i = chunk.first; i < chunk.first + chunk.count; ++i) {
      const Span span = m.span(i);
      const Count heads = span == Span::linear ? v.local.heads : v.local.kv_heads;
      const Count per_token = m.latent_attention() ? m.latent.kv_lora_rank + m.latent.qk_rope_head_dim
                                                   : heads * (m.query_head_dim() + m.value_head_dim());
      bytes = sum(bytes, product({v.layout.micro_batch, m.keys_kept(span, length), per_token, v.e},
                                 "cache of keys and values"));
    }
  return bytes;
}

// Weights, the cache and the widest activations, which exist for one layer only: input, output and the MLP's
// intermediate.
Memory inference_memory(const View& v) {
  const Count weights = sum(elements(v.tensors(), false), elements(v.tensors(), true));
  const Count wide = std::max(v.local.ffn, product({v.local.moe_ffn, std::max<Count>(1, v.model.top_k)}));
  Memory memory;
  memory.parameters = product({weights, v.e}, "parameters");
  memory.activations = sum(cache_bytes(v), product({v.tokens, sum(2 * v.model.hidden, 3 * wide), v.e}, "activations"));
  return memory;
}

}  // namespace

Memory memory_per_gpu(const Model& m, const Layout& layout, Framework framework, Count rank) {
  const Layout l = as_run_by(m, layout, framework);
  const bool megatron = framework == Framework::megatron, nanotron = framework == Framework::nanotron;
  const bool fsdp = framework == Framework::fsdp1 || framework == Framework::fsdp2;
  ViewOptions options;
  options.pad_vocabulary = megatron || framework == Framework::neox;
  options.whole_experts = framework == Framework::deepspeed || framework == Framework::neox;
  options.uneven = megatron   ? ViewOptions::Uneven::count_ends
                   : nanotron ? ViewOptions::Uneven::by_cost
                              : ViewOptions::Uneven::first_stages;
  const View v(m, l, rank, options);
  if (l.mode != Mode::train) return inference_memory(v);
  const auto tensors = v.tensors();
  const int zero = zero_stage(l, framework);
  // Megatron reduces bf16 gradients in f32; nanotron keeps the 16-bit gradients in addition to their f32
  // sums.
  const DType narrow = megatron ? plan::megatron_gradients(l) : l.grad_dtype.value_or(l.dtype);
  const Count gradient = static_cast<Count>(size_of(narrow)) + (nanotron ? 4 : 0);
  // Adam keeps two f32 moments, plus an f32 copy of narrower parameters; torch.optim alone two moments of the
  // parameters' type.
  const Count state = framework == Framework::ddp ? 2 * v.e : l.dtype == DType::f32 ? 8 : 12;
  Memory memory;
  for (const bool expert : {false, true}) {
    const Count all = elements(tensors, expert),
                replicas = (expert ? v.expert_dp_group : v.dp_group) / (fsdp ? l.hsdp : 1);
    const auto share = [&](bool cut) { return cut ? ceil_div(all, std::max<Count>(1, replicas)) : all; };
    memory.parameters = sum(memory.parameters, product({share(zero >= 3), v.e}, "parameters"));
    memory.gradients = sum(memory.gradients, product({share(zero >= 2), gradient}, "gradients"));
    memory.optimizer = sum(memory.optimizer, product({share(zero >= 1), state}, "optimizer state"));
  }
  // Two units of a sharded model are whole at a time: the current one and the one being gathered.
  if (zero >= 3 && v.dp_group > 1) {
    Count unit = 0;
    for (const Tensor& t : v.layer(v.chunks[0].first)) unit = sum(unit, t.elements());
    memory.parameters = sum(memory.parameters, product({2, unit, v.e}, "parameters"));
  }
  memory.activations = activations(v);
  if (nanotron) memory.activations = sum(memory.activations, run_ahead(v));
  return memory;
}

FullestGpu fullest_gpu(const Model& m, const Layout& l, Framework framework) {
  FullestGpu fullest;
  for (int stage = 0; stage < l.pp; ++stage) {
    // Stages between the first two and the last hold less than the stages before them.
    if (stage > 1 && stage < l.pp - 1 && !m.moe()) continue;
    const Count rank = rank_of(l, {.dp = 0, .tp = 0, .pp = stage, .cp = 0});
    const Memory memory = memory_per_gpu(m, l, framework, rank);
    if (stage == 0 || memory.total() > fullest.memory.total()) fullest = {rank, memory};
  }
  return fullest;
}

double usable_memory(double bytes) { return usable_share * bytes; }

std::string fit_sentence(const Memory& m, double gpu_bytes) {
  const double usable = usable_memory(gpu_bytes), total = static_cast<double>(m.total());
  const std::array<std::pair<const char*, Count>, 4> parts{{{"parameters", m.parameters},
                                                            {"gradients", m.gradients},
                                                            {"optimizer state", m.optimizer},
                                                            {"activations", m.activations}}};
  const auto* most = std::ranges::max_element(parts, {}, [](const auto& part) { return part.second; });
  constexpr double gib = 1024.0 * 1024.0 * 1024.0;
  return fmt::format(
      "{:.1f} of {:.1f} GiB usable, {:.1f} GiB {}; most of it {} (usable: {:.0f} % of {:.0f} GiB; context, NCCL, "
      "workspace and fragmentation take the rest)",
      total / gib, usable / gib, std::abs(usable - total) / gib, total <= usable ? "to spare" : "too much", most->first,
      100 * usable_share, gpu_bytes / gib);
}

nlohmann::ordered_json to_json(const Memory& m) {
  return {{"parameters", m.parameters},
          {"gradients", m.gradients},
          {"optimizer", m.optimizer},
          {"activations", m.activations},
          {"total", m.total()}};
}

}  // namespace medley::cost

#include "shape/capacity.hpp"

#include <algorithm>

#include "plan/memory.hpp"
#include "shape/step.hpp"

namespace medley::shape {
namespace {

// A CUDA context, NCCL's buffers, cuBLAS's workspace and the allocator's fragmentation take about 6 % of an
// 80 GB GPU.
constexpr double usable_share = 0.94;

// Keys and values of every cached token; latent attention keeps one compressed vector instead.
double cache_bytes(const Model& model, const Workload& work) {
  const Layout& layout = work.layout;
  const Count per_token = model.latent_attention()
                              ? model.latent.kv_lora_rank + model.latent.qk_rope_head_dim
                              : 2 * plan::ceil_div(model.kv_heads, layout.tp) * model.head_dim;
  const double tokens = double(layout.micro_batch) * double(plan::ceil_div(layout.seq, layout.cp));
  return tokens * double(per_token) * 2 * double(plan::ceil_div(model.layers, layout.pp));
}

double inference_bytes(const Model& model, const Workload& work) {
  const double weights = 2 * double(parameters_per_rank(model, work.layout));
  // the widest activations live for one layer only: input, output and the MLP's middle
  const double live = double(work.tokens()) * 2 *
                      (2 * double(model.hidden) +
                       3 * double(std::max(model.ffn, model.moe_ffn * model.top_k)) / work.layout.tp);
  return weights + cache_bytes(model, work) + live;
}

}  // namespace

double memory_bytes(const Model& model, const Workload& work) {
  if (work.mode != Mode::train) return inference_bytes(model, work);
  // the first stage holds most micro-batches, the last one the logits
  double most = 0;
  for (const int stage : {0, work.layout.pp - 1}) {
    const Count rank = plan::rank_of(work.layout, {.dp = 0, .tp = 0, .pp = stage, .cp = 0});
    most = std::max(
        most, double(plan::memory_per_gpu(model, work.layout, plan::Framework::textbook, rank).total()));
  }
  return most;
}

double usable_bytes(const Gpu& gpu) {
  return usable_share * gpu.hbm_gb * 1e9;
}

bool fits(const Gpu& gpu, const Model& model, const Workload& work) {
  return memory_bytes(model, work) <= usable_bytes(gpu);
}

Count largest_micro_batch(const Gpu& gpu, const Model& model, const Workload& work, Count limit) {
  const auto holds = [&](Count micro_batch) {
    Workload changed = work;
    changed.layout.micro_batch = micro_batch;
    changed.layout.global_batch =
        plan::product({micro_batch, work.layout.dp, work.layout.micro_batches()}, "global batch");
    return fits(gpu, model, changed);
  };
  if (!holds(1)) return 0;
  Count low = 1, high = limit + 1;  // memory grows with the batch, so bisection finds the edge
  while (high - low > 1) {
    const Count middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

Changes micro_batch_changes(const Gpu& gpu, const Model& model, const Workload& work) {
  Changes out;
  const Count now = work.layout.micro_batch, most = largest_micro_batch(gpu, model, work);
  const auto add = [&](Count micro_batch) {
    Change change{.knob = Knob::micro_batch, .was = now, .now = micro_batch, .model = model, .work = work};
    change.work.layout.micro_batch = micro_batch;
    change.work.layout.global_batch =
        plan::product({micro_batch, work.layout.dp, work.layout.micro_batches()}, "global batch");
    out.push_back(std::move(change));
  };
  for (Count micro_batch = 2 * now; micro_batch <= most; micro_batch *= 2) add(micro_batch);
  if (most > now && (out.empty() || out.back().now != most)) add(most);
  return out;
}

}  // namespace medley::shape

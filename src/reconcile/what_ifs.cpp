// The switches that change what a framework sends, with the sentence each one stands for.
#include <fmt/format.h>

#include "reconcile/causes.hpp"

namespace medley::reconcile {
namespace {

using plan::Framework;
using plan::Layout;

/// Flips a switch of the layout.
WhatIf flip(bool plan::Flags::*flag, bool now, std::string when_on, std::string when_off) {
  return {[flag](Layout& l, Framework&) { return l.flags.*flag = !(l.flags.*flag), true; },
          now ? std::move(when_off) : std::move(when_on)};
}

template <typename T>
WhatIf set(T Layout::*field, T value, std::string cause) {
  return {[field, value](Layout& l, Framework&) {
            if (l.*field == value) return false;
            l.*field = value;
            return true;
          },
          std::move(cause)};
}

WhatIf buckets(plan::Count plan::Flags::*field, plan::Count value, const char* key) {
  return {[field, value](Layout& l, Framework&) {
            return l.flags.*field != value && (l.flags.*field = value, true);
          },
          fmt::format("{} is {}, not what was planned", key, value)};
}

void deepspeed_switches(const plan::Flags& f, std::vector<WhatIf>& out) {
  out.push_back(flip(&plan::Flags::multi_rank_bucket_allreduce, f.multi_rank_bucket_allreduce,
                     "ZeRO all_reduces whole buckets because use_multi_rank_bucket_allreduce is on",
                     "ZeRO reduces each slice to its owner because use_multi_rank_bucket_allreduce is off"));
  out.push_back(flip(&plan::Flags::reduce_scatter, f.reduce_scatter,
                     "reduce_scatter is on in zero_optimization",
                     "ZeRO all_reduces gradients because reduce_scatter is off in zero_optimization"));
  out.push_back(flip(&plan::Flags::gradient_clipping, f.gradient_clipping,
                     "gradient clipping is on: the norm is reduced once a step",
                     "gradient clipping is off: no norm is reduced"));
  out.push_back(flip(&plan::Flags::partitioned_pipe, f.partitioned_pipe,
                     "stages exchange partitions and gather them (pipe_partitioned is on)",
                     "stages exchange whole activations (pipe_partitioned is off)"));
  for (const plan::Count value : {50'000'000, 100'000'000, 200'000'000, 500'000'000, 1'000'000'000}) {
    out.push_back(buckets(&plan::Flags::reduce_bucket_elements, value, "reduce_bucket_size"));
    out.push_back(buckets(&plan::Flags::allgather_bucket_elements, value, "allgather_bucket_size"));
    out.push_back(buckets(&plan::Flags::prefetch_elements, value, "stage3_prefetch_bucket_size"));
  }
  for (const plan::Count value : {plan::Count{0}, plan::Count{10'000}, plan::Count{1'000'000}}) {
    out.push_back(buckets(&plan::Flags::persistence_elements, value, "stage3_param_persistence_threshold"));
  }
  out.push_back(buckets(&plan::Flags::max_reuse_elements, 1'000'000'000, "stage3_max_reuse_distance"));
}

void torch_switches(const plan::Flags& f, std::vector<WhatIf>& out) {
  out.push_back(flip(&plan::Flags::no_sync, f.no_sync,
                     "gradients are reduced in the last micro-batch only: the others ran under no_sync()",
                     "gradients are reduced in every micro-batch: no_sync() is not used"));
  for (const plan::Count mib : {1, 5, 10, 25, 50, 100, 200, 500}) {
    out.push_back({[bytes = mib << 20](Layout& l, Framework&) {
                     if (l.flags.bucket_bytes == bytes && l.flags.first_bucket_bytes == bytes) return false;
                     l.flags.bucket_bytes = l.flags.first_bucket_bytes = bytes;
                     return true;
                   },
                   fmt::format("bucket_cap_mb is {}, not what was planned", mib)});
  }
  out.push_back({[](Layout& l, Framework&) {
                   const plan::Flags usual;
                   if (l.flags.bucket_bytes == usual.bucket_bytes &&
                       l.flags.first_bucket_bytes == usual.first_bucket_bytes)
                     return false;
                   l.flags.bucket_bytes = usual.bucket_bytes;
                   l.flags.first_bucket_bytes = usual.first_bucket_bytes;
                   return true;
                 },
                 "bucket_cap_mb is not given: the first bucket has 1 MiB, the others 25 MiB"});
  out.push_back({[](Layout& l, Framework&) {
                   return l.flags.first_bucket_bytes != l.flags.bucket_bytes &&
                          (l.flags.first_bucket_bytes = l.flags.bucket_bytes, true);
                 },
                 "the first bucket is as large as the others: DDP's 1 MiB default does not hold here"});
  out.push_back(flip(&plan::Flags::reshard_after_forward, f.reshard_after_forward,
                     "parameters are gathered again for the backward pass: reshard_after_forward is on",
                     "parameters stay gathered between the passes: reshard_after_forward is off"));
  out.push_back(flip(&plan::Flags::gradient_clipping, f.gradient_clipping,
                     "gradients are clipped: their norm is reduced once a step",
                     "gradients are not clipped: no norm is reduced"));
  out.push_back(flip(&plan::Flags::shard_embeddings_apart, f.shard_embeddings_apart,
                     "embedding and head are fully_shard groups of their own",
                     "embedding and head belong to the root's group"));
}

void megatron_switches(const plan::Flags& f, std::vector<WhatIf>& out) {
  out.push_back(flip(&plan::Flags::overlap_grad_reduce, f.overlap_grad_reduce,
                     "gradients go in buckets because overlap_grad_reduce is on",
                     "gradients go in one piece because overlap_grad_reduce is off"));
  out.push_back(flip(&plan::Flags::overlap_param_gather, f.overlap_param_gather, "overlap_param_gather is on",
                     "overlap_param_gather is off"));
  out.push_back(flip(&plan::Flags::variable_seq_lengths, f.variable_seq_lengths,
                     "stages exchange shapes first: variable_seq_lengths is on",
                     "no shapes are exchanged: variable_seq_lengths is off"));
  out.push_back(flip(&plan::Flags::attention_mask, f.attention_mask,
                     "the attention mask is broadcast in the tensor group",
                     "the attention mask is not broadcast"));
  out.push_back(flip(&plan::Flags::fp32_allreduce, f.fp32_allreduce,
                     "activations are reduced in f32 (fp32_allreduce)", "activations are reduced in bf16"));
}

void layout_switches(const Layout& l, std::vector<WhatIf>& out) {
  for (const int zero : {0, 1, 2, 3})
    out.push_back(set(&Layout::zero, zero, fmt::format("ZeRO stage {} ran, not {}", zero, l.zero)));
  out.push_back(set(&Layout::sp, !l.sp, l.sp ? "sequence parallelism is off" : "sequence parallelism is on"));
  using plan::Recompute;
  out.push_back(set(&Layout::recompute, Recompute::none, "activations are not recomputed"));
  out.push_back(set(&Layout::recompute, Recompute::selective,
                    "attention is recomputed in the backward pass (selective)"));
  out.push_back(
      set(&Layout::recompute, Recompute::full, "layers are recomputed in the backward pass (full)"));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    out.push_back(set(&Layout::dtype, dtype,
                      fmt::format("activations and parameters are in {}, not {}", medley::name(dtype),
                                  medley::name(l.dtype))));
    out.push_back(set(&Layout::grad_dtype, std::optional<DType>(dtype),
                      fmt::format("gradients are reduced in {}", medley::name(dtype))));
  }
  for (const plan::Count times : {1, 2, 4, 8, 16, 32}) {
    if (times == l.micro_batches()) continue;
    out.push_back(set(&Layout::global_batch, l.micro_batch * l.dp * times,
                      fmt::format("a step has {} micro-batches, not {}", times, l.micro_batches())));
  }
}

}  // namespace

std::vector<WhatIf> what_ifs(const Plan& plan) {
  std::vector<WhatIf> out;
  const plan::Flags& f = plan.layout.flags;
  const Framework framework = plan.framework;
  if (framework == Framework::deepspeed || framework == Framework::neox) deepspeed_switches(f, out);
  if (framework == Framework::ddp || framework == Framework::fsdp2) torch_switches(f, out);
  if (framework == Framework::megatron || framework == Framework::neox) megatron_switches(f, out);
  layout_switches(plan.layout, out);
  for (int i = 0; i < plan::framework_count; ++i) {
    const auto other = static_cast<Framework>(i);
    if (other == framework) continue;
    out.push_back({[other](Layout&, Framework& now) { return now = other, true; },
                   fmt::format("this is how {} does it, not {}", plan::name(other), plan::name(framework))});
  }
  return out;
}

}  // namespace medley::reconcile

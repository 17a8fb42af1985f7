#include "reconcile/hypotheses.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "model/read_layout.hpp"

namespace medley::reconcile {
namespace {

using plan::Framework;

constexpr unsigned bit(Framework framework) { return 1u << static_cast<unsigned>(framework); }
constexpr unsigned deepspeed = bit(Framework::deepspeed) | bit(Framework::neox);
constexpr unsigned torch = bit(Framework::ddp) | bit(Framework::fsdp2);
constexpr unsigned megatron = bit(Framework::megatron) | bit(Framework::neox);
constexpr unsigned every = ~0u;

/// A switch of a framework, by its key in --layout, and what each position means for the run.
struct Switch {
  unsigned frameworks;
  const char *key, *on, *off;
};
constexpr Switch switches[] = {
    {deepspeed, "use_multi_rank_bucket_allreduce",
     "ZeRO all_reduces whole buckets because use_multi_rank_bucket_allreduce is on",
     "ZeRO reduces each slice to its owner because use_multi_rank_bucket_allreduce is off"},
    {deepspeed, "reduce_scatter", "reduce_scatter is on in zero_optimization",
     "ZeRO all_reduces gradients because reduce_scatter is off in zero_optimization"},
    {deepspeed, "overlap_comm", "overlap_comm is on: gradients are reduced while the backward pass runs",
     "overlap_comm is off: gradients are reduced in blocking calls"},
    {deepspeed, "pipe_partitioned", "stages exchange partitions and gather them (pipe_partitioned is on)",
     "stages exchange whole activations (pipe_partitioned is off)"},
    {deepspeed | torch, "gradient_clipping", "gradients are clipped: their norm is reduced once a step",
     "gradients are not clipped: no norm is reduced"},
    {torch, "no_sync", "gradients are reduced in the last micro-batch only: the others ran under no_sync()",
     "gradients are reduced in every micro-batch: no_sync() is not used"},
    {torch, "reshard_after_forward", "parameters are gathered again for the backward pass: reshard_after_forward is on",
     "parameters stay gathered between the passes: reshard_after_forward is off"},
    {torch, "shard_embeddings_apart", "embedding and head are fully_shard groups of their own",
     "embedding and head belong to the root's group"},
    {megatron, "overlap_grad_reduce", "gradients go in buckets because overlap_grad_reduce is on",
     "gradients go in one piece because overlap_grad_reduce is off"},
    {megatron, "overlap_param_gather", "overlap_param_gather is on", "overlap_param_gather is off"},
    {megatron, "variable_seq_lengths", "stages exchange shapes first: variable_seq_lengths is on",
     "no shapes are exchanged: variable_seq_lengths is off"},
    {megatron, "attention_mask", "the attention mask is broadcast in the tensor group",
     "the attention mask is not broadcast"},
    {megatron, "fp32_allreduce", "activations are reduced in f32 (fp32_allreduce)",
     "activations are reduced in the model's dtype (fp32_allreduce is off)"},
    {every, "sp", "sequence parallelism is on", "sequence parallelism is off"},
};

/// A setting with a size. `unit` converts an observed size in bytes to the setting's unit.
struct Size {
  unsigned frameworks;
  const char* key;
  std::vector<std::int64_t> usual;
  bool elements;
};
const std::vector<Size>& sizes() {
  static const std::vector<Size> all = {
      {deepspeed, "reduce_bucket_size", {50'000'000, 100'000'000, 200'000'000, 500'000'000, 1'000'000'000}, true},
      {deepspeed, "allgather_bucket_size", {50'000'000, 100'000'000, 200'000'000, 500'000'000, 1'000'000'000}, true},
      {deepspeed, "stage3_prefetch_bucket_size", {0, 50'000'000, 100'000'000, 200'000'000, 500'000'000}, true},
      {deepspeed, "stage3_param_persistence_threshold", {0, 10'000, 100'000, 1'000'000}, true},
      {deepspeed, "stage3_max_reuse_distance", {0, 1'000'000'000}, true},
      {megatron, "ddp_bucket_size", {10'000'000, 40'000'000, 100'000'000}, true},
  };
  return all;
}

Hypothesis with_key(const char* key, const std::string& value, std::string sentence) {
  return {std::move(sentence), key, [key, value](Plan& plan) {
            plan::set_layout_key(plan.layout, key, value, "hypothesis");
            return true;
          }};
}

void add_sizes(const Plan& plan, const std::set<std::int64_t>& observed, std::vector<Hypothesis>& out) {
  for (const Size& size : sizes()) {
    if (!(size.frameworks & bit(plan.framework))) continue;
    std::set<std::int64_t> values(size.usual.begin(), size.usual.end());
    // A bucket closes once it is full: the smallest full one is as large as the setting, or slightly larger.
    for (const std::int64_t bytes : observed) {
      for (const std::int64_t wide : {4, 2})
        if (bytes % wide == 0) values.insert(bytes / wide);
    }
    for (const std::int64_t value : values) {
      out.push_back(with_key(size.key, std::to_string(value),
                             fmt::format("{} is {}, or another value that cuts the same buckets", size.key, value)));
    }
  }
}

/// DDP: with bucket_cap_mb given the first bucket is as large as the others.
void add_ddp_buckets(const std::set<std::int64_t>& observed, std::vector<Hypothesis>& out) {
  std::set<std::int64_t> caps = observed;
  for (const std::int64_t mib : {1, 5, 10, 25, 50, 100, 200, 500}) caps.insert(mib << 20);
  for (const std::int64_t cap : caps) {
    if (cap < 1) continue;
    const bool whole = cap % (1 << 20) == 0;
    out.push_back({whole ? fmt::format("bucket_cap_mb is {}", cap >> 20)
                         : fmt::format("bucket_cap_mb is {:.6g}, or another value that cuts the same buckets",
                                       static_cast<double>(cap) / (1 << 20)),
                   "bucket_cap_mb", [cap](Plan& plan) {
                     plan::set_layout_key(plan.layout, "bucket_bytes", std::to_string(cap), "hypothesis");
                     plan::set_layout_key(plan.layout, "first_bucket_bytes", std::to_string(cap), "hypothesis");
                     return true;
                   }});
  }
  out.push_back(
      {"bucket_cap_mb is not given: the first bucket has 1 MiB, the others 25 MiB", "bucket_cap_mb", [](Plan& plan) {
         plan::set_layout_key(plan.layout, "bucket_bytes", std::to_string(25 << 20), "hypothesis");
         plan::set_layout_key(plan.layout, "first_bucket_bytes", std::to_string(1 << 20), "hypothesis");
         return true;
       }});
}

void add_layout(const Plan& plan, std::vector<Hypothesis>& out) {
  const plan::Layout& l = plan.layout;
  for (const int zero : {0, 1, 2, 3}) {
    if (zero != l.zero)
      out.push_back(with_key("zero", std::to_string(zero), fmt::format("ZeRO stage {} ran, not {}", zero, l.zero)));
  }
  out.push_back(with_key("recompute", "none", "activations are not recomputed"));
  out.push_back(with_key("recompute", "selective", "attention is recomputed in the backward pass (selective)"));
  out.push_back(with_key("recompute", "full", "layers are recomputed in the backward pass (full)"));
  for (const char* dtype : {"f32", "bf16", "f16"}) {
    if (dtype != medley::name(l.dtype))
      out.push_back(with_key(
          "dtype", dtype, fmt::format("activations and parameters are in {}, not {}", dtype, medley::name(l.dtype))));
    out.push_back(with_key("grad_dtype", dtype, fmt::format("gradients are reduced in {}", dtype)));
  }
  for (const std::int64_t times : {1, 2, 4, 8, 16, 32, 64}) {
    if (times == l.micro_batches()) continue;
    out.push_back({fmt::format("a step has {} micro-batches, not {}", times, l.micro_batches()), "global_batch",
                   [times](Plan& p) {
                     p.layout.global_batch = p.layout.micro_batch * p.layout.dp * times;
                     return true;
                   }});
  }
  for (const std::int64_t size : {1, 2, 4, 8, 16, 32, 64}) {
    if (size == l.micro_batch) continue;
    out.push_back(
        {fmt::format("a micro-batch has {} samples, not {}", size, l.micro_batch), "micro_batch", [size](Plan& p) {
           const plan::Count times = p.layout.micro_batches();
           p.layout.micro_batch = size;
           p.layout.global_batch = size * p.layout.dp * times;
           return true;
         }});
  }
  for (std::int64_t seq = 16; seq <= 131072; seq *= 2) {
    if (seq != l.seq)
      out.push_back(with_key("seq", std::to_string(seq), fmt::format("samples have {} tokens, not {}", seq, l.seq)));
  }
}

}  // namespace

std::vector<Hypothesis> hypotheses(const Plan& plan, const std::set<std::int64_t>& observed_sizes) {
  std::vector<Hypothesis> out;
  for (const Switch& s : switches) {
    if (!(s.frameworks & bit(plan.framework))) continue;
    out.push_back(with_key(s.key, "on", s.on));
    out.push_back(with_key(s.key, "off", s.off));
  }
  add_sizes(plan, observed_sizes, out);
  if (plan.framework == Framework::ddp) add_ddp_buckets(observed_sizes, out);
  add_layout(plan, out);
  for (int i = 0; i < plan::framework_count; ++i) {
    const auto other = static_cast<Framework>(i);
    if (other == plan.framework) continue;
    out.push_back({fmt::format("this is how {} does it, not {}", plan::name(other), plan::name(plan.framework)),
                   "framework", [other](Plan& p) {
                     p.framework = other;
                     return true;
                   }});
  }
  return out;
}

}  // namespace medley::reconcile

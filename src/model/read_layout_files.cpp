// Layouts from the frameworks' own files: ds_config.json, GPT-NeoX yml, Megatron-LM arguments.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "model/read_layout.hpp"
#include "model/yaml.hpp"

namespace medley::model {
namespace {

// train_batch_size = micro-batch · gradient_accumulation_steps · dp, as in DeepSpeed and NeoX.
struct Batches {
  Count total = 0, micro = 0, steps = 0;
};
void set_batches(Layout& l, const Batches& b, const std::string& source) {
  for (const Count value : {b.total, b.micro, b.steps}) {
    if (value < 0) refuse_at(source, fmt::format("a batch size is {}; it must be at least 1", value));
  }
  if (b.micro > 0) l.micro_batch = b.micro;
  if (b.total > 0) l.global_batch = b.total;
  if (b.total > 0 && b.micro > 0 && b.steps > 0) {
    const Count round = product({b.micro, b.steps}, "train_batch_size");
    if (b.total % round != 0) {
      refuse_at(source, fmt::format("train_batch_size {} is not a multiple of train_micro_batch_size_per_gpu "
                                    "{} times gradient_accumulation_steps {}",
                                    b.total, b.micro, b.steps));
    }
    const Count dp = b.total / round;
    if (dp > (1 << 20))
      refuse_at(source, fmt::format("train_batch_size {} means {} data-parallel ranks, more than 2^20", b.total, dp));
    l.dp = static_cast<int>(dp);
  } else if (b.total == 0 && b.steps > 0) {
    l.accumulation = b.steps;
  }
}

/// A value of a ds_config as text; "auto" (Hugging Face fills it in) counts as absent.
std::string value_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || object[key].is_null()) return {};
  const auto& value = object[key];
  if (value.is_string()) return value.get<std::string>() == "auto" ? std::string() : value.get<std::string>();
  return value.is_structured() ? std::string() : value.dump();
}

constexpr const char* zero_keys[] = {"stage",
                                     "reduce_bucket_size",
                                     "allgather_bucket_size",
                                     "overlap_comm",
                                     "reduce_scatter",
                                     "stage3_prefetch_bucket_size",
                                     "stage3_param_persistence_threshold",
                                     "stage3_max_live_parameters",
                                     "stage3_max_reuse_distance",
                                     "use_multi_rank_bucket_allreduce"};

}  // namespace

void layout_from_deepspeed(Layout& l, const nlohmann::json& config, const std::string& source) {
  const auto number = [&](const char* key) {
    const std::string text = value_of(config, key);
    return text.empty() ? Count{0} : parse_count(text, source, key);
  };
  set_batches(
      l, {number("train_batch_size"), number("train_micro_batch_size_per_gpu"), number("gradient_accumulation_steps")},
      source);
  if (config.contains("zero_optimization")) {
    const auto& zero = config["zero_optimization"];
    if (!zero.is_object()) refuse_at(source, "zero_optimization must be an object");
    for (const char* key : zero_keys) {
      if (const std::string text = value_of(zero, key); !text.empty())
        set_layout_key(l, key, text, fmt::format("{}: zero_optimization", source));
    }
  }
  const auto enabled = [&](const char* key) {
    return config.contains(key) && config[key].is_object() && value_of(config[key], "enabled") == "true";
  };
  if (enabled("bf16") && enabled("fp16")) refuse_at(source, "bf16.enabled and fp16.enabled exclude each other");
  if (enabled("bf16") || enabled("bfloat16")) l.dtype = DType::bf16;
  if (enabled("fp16")) l.dtype = DType::f16;
  if (const std::string text = value_of(config, "gradient_clipping"); !text.empty())
    l.flags.gradient_clipping = parse_real(text, source, "gradient_clipping") > 0;
  if (const std::string text = value_of(config, "communication_data_type"); !text.empty())
    set_layout_key(l, "grad_dtype", text, source);
  if (config.contains("pipeline") && config["pipeline"].is_object()) {
    if (const std::string text = value_of(config["pipeline"], "pipe_partitioned"); !text.empty())
      l.flags.partitioned_pipe = parse_switch(text, source, "pipe_partitioned");
  }
  if (const std::string text = value_of(config, "sequence_parallel_size"); !text.empty()) {
    set_layout_key(l, "cp", text, source);
    l.context = ContextKind::ulysses;
  }
}

void layout_from_neox(Layout& l, const std::string& yaml, const std::string& source) {
  const YamlMap keys(yaml, source);
  const auto set = [&](const std::string& from, const char* to) {
    if (const std::string text = keys.text(from, ""); !text.empty() && text != "null" && text != "auto")
      set_layout_key(l, to, text, source);
  };
  // NeoX writes 0 for "no pipeline module" and "no model parallelism".
  if (keys.number("pipe_parallel_size", 1) > 0) set("pipe_parallel_size", "pp");
  if (keys.number("model_parallel_size", 1) > 0) set("model_parallel_size", "tp");
  set("sequence_parallel", "sp");
  set("seq_length", "seq");
  set_batches(l,
              {keys.number("train_batch_size", 0), keys.number("train_micro_batch_size_per_gpu", 0),
               keys.number("gradient_accumulation_steps", 0)},
              source);
  for (const char* key : zero_keys) set(std::string("zero_optimization.") + key, key);
  set("gradient_clipping", "clip");
  if (keys.has("gradient_clipping")) l.flags.gradient_clipping = keys.real("gradient_clipping", 1) > 0;
  if (keys.flag("fp16.enabled", false)) l.dtype = DType::f16;
  if (keys.flag("bf16.enabled", false)) l.dtype = DType::bf16;
  set("precision", "dtype");
  set("fp32_allreduce", "fp32_allreduce");
  if (keys.flag("checkpoint_activations", false)) l.recompute = Recompute::full;
}

void layout_from_megatron(Layout& l, const Arguments& arguments, const std::string& source) {
  std::map<std::string, std::string> given;
  for (const auto& [key, value] : arguments) given[key] = value;
  const auto set = [&](const char* from, const char* to) {
    if (const auto found = given.find(from); found != given.end()) set_layout_key(l, to, found->second, source);
  };
  const auto has = [&](const char* key) { return given.count(key) > 0; };
  set("tensor_model_parallel_size", "tp");
  set("pipeline_model_parallel_size", "pp");
  set("context_parallel_size", "cp");
  set("cp_comm_type", "cp_kind");
  set("expert_model_parallel_size", "ep");
  set("expert_tensor_parallel_size", "etp");
  set("micro_batch_size", "micro_batch");
  set("global_batch_size", "global_batch");
  set("seq_length", "seq");
  set("data_parallel_size", "dp");
  set("ddp_bucket_size", "ddp_bucket_size");
  if (has("num_layers_per_virtual_pipeline_stage")) {
    if (!has("num_layers")) refuse_at(source, "--num-layers-per-virtual-pipeline-stage needs --num-layers");
    const Count each =
        parse_count(given["num_layers_per_virtual_pipeline_stage"], source, "--num-layers-per-virtual-pipeline-stage");
    const Count layers = parse_count(given["num_layers"], source, "--num-layers");
    if (each < 1 || layers % product({each, l.pp}) != 0) {
      refuse_at(source, fmt::format("--num-layers {} is not a multiple of "
                                    "--num-layers-per-virtual-pipeline-stage {} times {} stages",
                                    layers, each, l.pp));
    }
    set_layout_key(l, "vp", std::to_string(layers / product({each, l.pp})), source);
  }
  set("num_virtual_stages_per_pipeline_rank", "vp");
  if (has("sequence_parallel")) l.sp = true;
  if (has("use_distributed_optimizer")) l.zero = 1;
  if (has("overlap_grad_reduce")) l.flags.overlap_grad_reduce = true;
  if (has("overlap_param_gather")) l.flags.overlap_param_gather = true;
  if (has("tp_comm_overlap")) l.flags.tp_comm_overlap = true;
  if (has("overlap_moe_expert_parallel_comm")) l.flags.overlap_experts = true;
  if (has("variable_seq_lengths")) l.flags.variable_seq_lengths = true;
  if (has("no_overlap_p2p_communication")) l.flags.overlap_p2p = false;
  if (has("bf16")) l.dtype = DType::bf16;
  if (has("fp16")) l.dtype = DType::f16;
  if (!has("bf16") && !has("fp16")) l.dtype = DType::f32;  // Megatron trains in f32 by default
  if (has("accumulate_allreduce_grads_in_fp32")) l.grad_dtype = DType::f32;
  if (has("recompute_activations")) l.recompute = Recompute::selective;
  set("recompute_granularity", "recompute");
  if (has("clip_grad")) l.flags.gradient_clipping = parse_real(given["clip_grad"], source, "--clip-grad") > 0;
  set("world_size", "world");
}

}  // namespace medley::model

#include "model/read_layout.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <medley/error.hpp>

namespace medley::model {
namespace {

using Setter = std::function<void(Layout&, const std::string& value, const std::string& place)>;

int small(const std::string& value, const std::string& place, const char* key) {
  const Count n = parse_count(value, place, key);
  if (n < 0 || n > (1 << 20)) refuse_at(place, fmt::format("{} is {}; it must lie between 0 and 2^20", key, n));
  return static_cast<int>(n);
}

Setter size_key(int Layout::*field, const char* key) {
  return [=](Layout& l, const std::string& v, const std::string& p) {
    l.*field = small(v, p, key);
    if (l.*field < 1 && field != &Layout::zero)
      refuse_at(p, fmt::format("{} is {}; it must be at least 1", key, l.*field));
  };
}
Setter count_key(Count Layout::*field, const char* key) {
  return [=](Layout& l, const std::string& v, const std::string& p) {
    l.*field = parse_count(v, p, key);
    if (l.*field < 1) refuse_at(p, fmt::format("{} is {}; it must be at least 1", key, l.*field));
  };
}
Setter flag_key(bool Flags::*field, const char* key) {
  return [=](Layout& l, const std::string& v, const std::string& p) { l.flags.*field = parse_switch(v, p, key); };
}
Setter elements_key(Count Flags::*field, const char* key) {
  return [=](Layout& l, const std::string& v, const std::string& p) {
    l.flags.*field = parse_count(v, p, key);
    if (l.flags.*field < 0) refuse_at(p, fmt::format("{} is negative", key));
  };
}
template <typename E>
Setter choice_key(E Layout::*field, const char* key, std::map<std::string, E> choices) {
  return [=](Layout& l, const std::string& v, const std::string& p) {
    const auto found = choices.find(plain_key(v));
    if (found != choices.end()) {
      l.*field = found->second;
      return;
    }
    std::string names;
    for (const auto& [name, value] : choices) names += (names.empty() ? "" : ", ") + name;
    refuse_at(p, fmt::format("{} is '{}'; it must be one of {}", key, v, names));
  };
}

void sequence_parallel(Layout& l, const std::string& v, const std::string& p) {
  if (const auto digits = v.find_first_not_of("0123456789");
      !v.empty() && digits == std::string::npos && v != "0" && v != "1") {
    refuse_at(p, fmt::format("sp is {}; it is on or off, over the tensor group: to split the sequence over "
                             "more ranks use cp={}",
                             v, v));
  }
  l.sp = parse_switch(v, p, "sp");
}

void dtype_value(DType& to, const std::string& v, const std::string& p, const char* key) {
  const std::string plain = plain_key(v);
  const auto dtype = parse_dtype(plain == "fp32" ? "f32" : plain == "fp16" || plain == "half" ? "f16" : plain);
  if (!dtype || (*dtype != DType::f32 && *dtype != DType::f16 && *dtype != DType::bf16)) {
    refuse_at(p, fmt::format("{} is '{}'; it must be bf16, f16 or f32", key, v));
  }
  to = *dtype;
}

void attention_kernel(Layout& l, const std::string& v, const std::string& p) {
  static const std::map<std::string, AttentionKernel> kernels{{"best", AttentionKernel::best},
                                                              {"flash", AttentionKernel::flash},
                                                              {"flash2", AttentionKernel::flash},
                                                              {"cudnn", AttentionKernel::cudnn},
                                                              {"flash1", AttentionKernel::flash1}};
  const std::string plain = plain_key(v);
  l.flags.flash_attention = plain != "unfused";
  if (plain == "unfused") return;
  const auto found = kernels.find(plain);
  if (found == kernels.end())
    refuse_at(p, fmt::format("attention is '{}'; it must be best, flash, cudnn, flash1 or unfused", v));
  l.flags.attention = found->second;
}

void fp8_recipe(Layout& l, const std::string& v, const std::string& p) {
  static const std::map<std::string, Fp8Recipe> recipes{
      {"delayed", Fp8Recipe::delayed}, {"current", Fp8Recipe::current}, {"mx", Fp8Recipe::mx}};
  const auto found = recipes.find(plain_key(v));
  l.flags.fp8_recipe = found == recipes.end() ? Fp8Recipe::delayed : found->second;
  l.flags.fp8 = found != recipes.end() || parse_switch(v, p, "fp8");
}

void recompute_modules(Layout& l, const std::string& v, const std::string& p) {
  l.flags.recompute_modules = {};
  for (const std::string& module : split(v, '+')) {
    if (module == "layernorm") l.flags.recompute_modules.norms = true;
    else if (module == "moe_act") l.flags.recompute_modules.expert_activation = true;
    else if (module == "mla_up_proj") l.flags.recompute_modules.latent_projections = true;
    else if (module == "core_attn") l.recompute = Recompute::selective;
    else
      refuse_at(p, fmt::format("recompute_modules has '{}'; it takes layernorm, moe_act, mla_up_proj and core_attn, "
                               "joined by +",
                               module));
  }
}

const std::map<std::string, Setter>& setters() {
  static const std::map<std::string, Setter> table = [] {
    std::map<std::string, Setter> t;
    const auto add = [&](std::initializer_list<const char*> names, Setter setter) {
      for (const char* name : names) t[name] = setter;
    };
    add({"dp", "data_parallel"}, [](Layout& l, const std::string& v, const std::string& p) {
      size_key(&Layout::dp, "dp")(l, v, p);
      l.dp_given = true;
    });
    add({"world", "gpus"}, [](Layout& l, const std::string& v, const std::string& p) {
      l.ranks = small(v, p, "world");
      if (l.ranks < 1) refuse_at(p, fmt::format("world is {}; it must be at least 1", l.ranks));
    });
    add({"tp", "tensor_parallel"}, size_key(&Layout::tp, "tp"));
    add({"pp", "pipeline_parallel"}, size_key(&Layout::pp, "pp"));
    add({"cp", "context_parallel"}, size_key(&Layout::cp, "cp"));
    add({"ep", "expert_parallel"}, size_key(&Layout::ep, "ep"));
    add({"etp", "expert_tensor_parallel"}, size_key(&Layout::etp, "etp"));
    add({"vp", "v", "virtual_stages", "interleave"}, size_key(&Layout::virtual_stages, "vp"));
    add({"hsdp"}, size_key(&Layout::hsdp, "hsdp"));
    add({"zero", "zero_stage", "stage"}, size_key(&Layout::zero, "zero"));
    add({"sp", "sequence_parallel"}, sequence_parallel);
    add({"micro_batch", "mbs", "b"}, count_key(&Layout::micro_batch, "micro_batch"));
    add({"global_batch", "gbs"}, count_key(&Layout::global_batch, "global_batch"));
    add({"seq", "s"}, count_key(&Layout::seq, "seq"));
    add({"schedule", "pipeline"}, choice_key<PipelineKind>(&Layout::pipeline, "schedule",
                                                           {{"1f1b", PipelineKind::one_f_one_b},
                                                            {"gpipe", PipelineKind::gpipe},
                                                            {"interleaved", PipelineKind::interleaved}}));
    add({"cp_kind", "cp_type", "cp_comm_type"}, choice_key<ContextKind>(&Layout::context, "cp_kind",
                                                                        {{"ring", ContextKind::ring},
                                                                         {"p2p", ContextKind::ring},
                                                                         {"ulysses", ContextKind::ulysses},
                                                                         {"a2a", ContextKind::ulysses},
                                                                         {"all_gather", ContextKind::all_gather},
                                                                         {"allgather", ContextKind::all_gather}}));
    add({"recompute"}, choice_key<Recompute>(&Layout::recompute, "recompute",
                                             {{"none", Recompute::none},
                                              {"off", Recompute::none},
                                              {"selective", Recompute::selective},
                                              {"full", Recompute::full},
                                              {"per_op", Recompute::per_op},
                                              {"on", Recompute::full}}));
    add({"dtype"}, [](Layout& l, const std::string& v, const std::string& p) {
      // fp8 training keeps its parameters and activations in bf16 between the products
      l.flags.fp8 = plain_key(v) == "fp8";
      if (l.flags.fp8) l.dtype = DType::bf16;
      else dtype_value(l.dtype, v, p, "dtype");
    });
    add({"grad_dtype"}, [](Layout& l, const std::string& v, const std::string& p) {
      DType d{};
      dtype_value(d, v, p, "grad_dtype");
      l.grad_dtype = d;
    });
    add({"overlap_grad_reduce"}, flag_key(&Flags::overlap_grad_reduce, "overlap_grad_reduce"));
    add({"overlap_param_gather"}, flag_key(&Flags::overlap_param_gather, "overlap_param_gather"));
    add({"tp_comm_overlap"}, flag_key(&Flags::tp_comm_overlap, "tp_comm_overlap"));
    add({"overlap_moe_expert_parallel_comm"}, flag_key(&Flags::overlap_experts, "overlap_moe_expert_parallel_comm"));
    add({"variable_seq_lengths"}, flag_key(&Flags::variable_seq_lengths, "variable_seq_lengths"));
    add({"attention_mask"}, flag_key(&Flags::attention_mask, "attention_mask"));
    add({"overlap_p2p"}, flag_key(&Flags::overlap_p2p, "overlap_p2p"));
    add({"ddp_bucket_size"}, [](Layout& l, const std::string& v, const std::string& p) {
      l.flags.ddp_bucket_elements = std::max<Count>(1, parse_count(v, p, "ddp_bucket_size"));
    });
    add({"reduce_bucket_size", "reduce_bucket"}, elements_key(&Flags::reduce_bucket_elements, "reduce_bucket_size"));
    add({"allgather_bucket_size"}, elements_key(&Flags::allgather_bucket_elements, "allgather_bucket_size"));
    add({"prefetch_bucket_size", "prefetch", "stage3_prefetch_bucket_size"},
        elements_key(&Flags::prefetch_elements, "prefetch_bucket_size"));
    add({"param_persistence_threshold", "persistence", "stage3_param_persistence_threshold"},
        elements_key(&Flags::persistence_elements, "param_persistence_threshold"));
    add({"max_live_parameters", "stage3_max_live_parameters"},
        elements_key(&Flags::max_live_elements, "max_live_parameters"));
    add({"max_reuse_distance", "stage3_max_reuse_distance"},
        elements_key(&Flags::max_reuse_elements, "max_reuse_distance"));
    add({"overlap_comm"}, [](Layout& l, const std::string& v, const std::string& p) {
      l.flags.overlap_comm = parse_switch(v, p, "overlap_comm");
    });
    add({"reduce_scatter"}, flag_key(&Flags::reduce_scatter, "reduce_scatter"));
    add({"use_multi_rank_bucket_allreduce", "multi_rank_bucket_allreduce"},
        flag_key(&Flags::multi_rank_bucket_allreduce, "use_multi_rank_bucket_allreduce"));
    add({"partitioned_pipe", "pipe_partitioned"}, flag_key(&Flags::partitioned_pipe, "pipe_partitioned"));
    add({"clip", "gradient_clipping", "clip_grad"}, flag_key(&Flags::gradient_clipping, "gradient_clipping"));
    add({"fp32_allreduce"}, flag_key(&Flags::fp32_allreduce, "fp32_allreduce"));
    add({"first_bucket_bytes"}, elements_key(&Flags::first_bucket_bytes, "first_bucket_bytes"));
    add({"bucket_bytes"}, elements_key(&Flags::bucket_bytes, "bucket_bytes"));
    add({"bucket_cap_mb"}, [](Layout& l, const std::string& v, const std::string& p) {
      // As in DDP: the smaller first bucket applies only when no size is given. Fractions of a MiB become
      // bytes, rounded down.
      const double mib = parse_real(v, p, "bucket_cap_mb");
      if (mib < 0 || mib > 1e9) refuse_at(p, fmt::format("bucket_cap_mb is {}; it must lie between 0 and 1e9", v));
      l.flags.bucket_bytes = l.flags.first_bucket_bytes = static_cast<Count>(mib * 1048576.0);
    });
    add({"no_sync"}, flag_key(&Flags::no_sync, "no_sync"));
    add({"reshard_after_forward"}, flag_key(&Flags::reshard_after_forward, "reshard_after_forward"));
    add({"loss_parallel"}, flag_key(&Flags::loss_parallel, "loss_parallel"));
    add({"shard_embeddings_apart"}, flag_key(&Flags::shard_embeddings_apart, "shard_embeddings_apart"));
    add({"flash", "flash_attention"}, flag_key(&Flags::flash_attention, "flash_attention"));
    add({"attention", "attention_kernel"}, attention_kernel);
    add({"compile"}, flag_key(&Flags::compile, "compile"));
    add({"cuda_graphs", "cuda_graph"}, [](Layout& l, const std::string& v, const std::string& p) {
      l.flags.partial_graphs = plain_key(v) == "partial";
      l.flags.cuda_graphs = !l.flags.partial_graphs && parse_switch(v, p, "cuda_graphs");
    });
    add({"bias_activation_fusion"}, flag_key(&Flags::activation_fusion, "bias_activation_fusion"));
    add({"fused_grouped_mlp"}, flag_key(&Flags::fused_grouped_mlp, "fused_grouped_mlp"));
    add({"recompute_modules"}, recompute_modules);
    add({"dropout"},
        [](Layout& l, const std::string& v, const std::string& p) { l.flags.dropout = parse_switch(v, p, "dropout"); });
    add({"distributed_debug"}, [](Layout& l, const std::string& v, const std::string& p) {
      l.flags.distributed_debug = parse_switch(v, p, "distributed_debug");
    });
    add({"fp8"}, fp8_recipe);
    add({"mode"}, choice_key<Mode>(&Layout::mode, "mode",
                                   {{"train", Mode::train}, {"prefill", Mode::prefill}, {"decode", Mode::decode}}));
    add({"capacity_factor"}, [](Layout& l, const std::string& v, const std::string& p) {
      l.flags.capacity_factor = parse_real(v, p, "capacity_factor");
    });
    return t;
  }();
  return table;
}

void read_layout_file(Layout& layout, const std::string& path) {
  const std::string text = read_file(path);
  if (path.ends_with(".json")) layout_from_deepspeed(layout, parse_json(text, path), path);
  else if (path.ends_with(".yml") || path.ends_with(".yaml")) layout_from_neox(layout, text, path);
  else layout_from_megatron(layout, parse_arguments(text), path);
}

}  // namespace

bool set_layout_key(Layout& layout, const std::string& key, const std::string& value, const std::string& place) {
  const auto found = setters().find(plain_key(key));
  if (found == setters().end()) return false;
  found->second(layout, value, place);
  return true;
}

Layout read_layout(const std::string& spec) {
  Layout layout;
  if (trimmed(spec).rfind("--", 0) == 0) {
    layout_from_megatron(layout, parse_arguments(spec), "--layout");
    derive_dp(layout);
    return layout;
  }
  std::map<std::string, std::string> seen;
  for (const std::string& item : split(spec, ',')) {
    if (item.empty()) continue;
    const auto equals = item.find('=');
    if (equals == std::string::npos) {
      if (!is_file(item)) refuse_at("--layout", fmt::format("'{}' is neither key=value nor a file", item));
      read_layout_file(layout, item);
      continue;
    }
    const std::string key = plain_key(trimmed(item.substr(0, equals))), value = trimmed(item.substr(equals + 1));
    const auto [at, fresh] = seen.emplace(key, value);
    if (!fresh && at->second != value)
      refuse_at("--layout", fmt::format("{} is given twice, as {} and {}", key, at->second, value));
    if (!set_layout_key(layout, key, value, "--layout"))
      refuse_at("--layout", fmt::format("key '{}' is not known", key));
  }
  derive_dp(layout);
  return layout;
}

std::string layout_text(const Layout& l) {
  static constexpr const char* recomputed[] = {"", ",recompute=selective", ",recompute=full", ",recompute=per_op"};
  std::string text = fmt::format("dp={},tp={},pp={}", l.dp, l.tp, l.pp);
  if (l.virtual_stages > 1) text += fmt::format(",vp={}", l.virtual_stages);
  if (l.cp > 1) text += fmt::format(",cp={}", l.cp);
  if (l.ep > 1) text += fmt::format(",ep={}", l.ep);
  if (l.expert_tensor() != l.tp) text += fmt::format(",etp={}", l.etp);
  if (l.sp) text += ",sp=on";
  if (l.zero > 0) text += fmt::format(",zero={}", l.zero);
  if (l.hsdp > 1) text += fmt::format(",hsdp={}", l.hsdp);
  return text + recomputed[static_cast<std::size_t>(l.recompute)];
}

}  // namespace medley::model

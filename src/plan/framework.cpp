#include "plan/framework.hpp"

#include <fmt/format.h>

#include <array>
#include <medley/error.hpp>

#include "plan/frameworks.hpp"
#include "plan/volume.hpp"

namespace medley::plan {
namespace {

struct Maker {
  std::string_view name;
  Schedule (*make)(const Model&, const Layout&, Count);
};
constexpr std::array<Maker, framework_count> makers = {{{"textbook", textbook_schedule},
                                                        {"megatron", megatron_schedule},
                                                        {"deepspeed", deepspeed_schedule},
                                                        {"neox", neox_schedule},
                                                        {"ddp", ddp_schedule},
                                                        {"fsdp2", fsdp2_schedule},
                                                        {"fsdp1", fsdp1_schedule},
                                                        {"nanotron", nanotron_schedule}}};

}  // namespace

std::string_view name(Framework framework) noexcept { return makers[static_cast<std::size_t>(framework)].name; }

std::optional<Framework> parse_framework(std::string_view text) noexcept {
  for (std::size_t i = 0; i < makers.size(); ++i) {
    if (makers[i].name == text) return static_cast<Framework>(i);
  }
  return std::nullopt;
}

void refuse(Framework framework, const std::string& sentence) {
  throw Error(ErrorKind::invalid, fmt::format("{}: {}", name(framework), sentence));
}

Layout as_run_by(const Model& model, const Layout& layout, Framework framework) {
  Layout out = layout;
  const bool megatron_kernels = framework == Framework::megatron || framework == Framework::neox ||
                                (framework == Framework::deepspeed && layout.tp > 1);
  out.flags.fused_kernels = layout.flags.compile || megatron_kernels;
  // nanotron calls the flash_attn package, FlashAttention 2, on every GPU.
  if (framework == Framework::nanotron && layout.flags.attention == AttentionKernel::best)
    out.flags.attention = AttentionKernel::flash;
  if (!layout.flags.dropout)
    out.flags.dropout = megatron_kernels && layout.mode == Mode::train && model.norm == Norm::layer;
  return out;
}

int zero_stage(const Layout& layout, Framework framework) noexcept {
  if (framework != Framework::fsdp1 && framework != Framework::fsdp2) return layout.zero;
  return layout.zero == 2 || !layout.flags.reshard_after_forward ? 2 : 3;
}

std::string assumptions(const Model& model, const Layout& layout, Framework framework) {
  const Layout l = as_run_by(model, layout, framework);
  const auto on = [](bool value) { return value ? "on" : "off"; };
  std::string text = fmt::format("{} attention, {}{}, {} kernels{}", l.flags.flash_attention ? "fused" : "unfused",
                                 medley::name(l.dtype), l.flags.fp8 ? " with fp8 products" : "",
                                 l.flags.compile         ? "compiled"
                                 : l.flags.fused_kernels ? "Megatron's fused"
                                                         : "eager",
                                 l.flags.dropout.value_or(false) ? ", dropout" : "");
  if (framework == Framework::megatron)
    text += fmt::format(", overlap_grad_reduce={}, overlap_param_gather={}, tp_comm_overlap={}",
                        on(l.flags.overlap_grad_reduce), on(l.flags.overlap_param_gather), on(l.flags.tp_comm_overlap));
  if (framework == Framework::deepspeed || framework == Framework::neox)
    text += fmt::format(", overlap_comm={}", on(l.flags.overlap_comm.value_or(l.zero == 3)));
  if (framework == Framework::nanotron && l.pp > 1)
    text += fmt::format(", distributed_debug={}",
                        l.flags.distributed_debug ? on(*l.flags.distributed_debug) : "on across hosts");
  if (l.recompute == Recompute::none) text += ", nothing recomputed";
  return text;
}

Schedule make_schedule(const Model& model, const Layout& layout, Framework framework, Count rank) {
  if (layout.mode != Mode::train && framework != Framework::textbook)
    refuse(framework, "it trains; prefill and decode are planned as textbook");
  if (layout.expert_tensor() != layout.tp && framework != Framework::megatron && framework != Framework::textbook)
    refuse(framework, fmt::format("etp is {}; only megatron shards experts over other ranks than layers", layout.etp));
  return makers[static_cast<std::size_t>(framework)].make(model, as_run_by(model, layout, framework), rank);
}

std::vector<Entry> block_entries(const Model& model, const Layout& layout, Framework framework, BlockKind block,
                                 LayerKind kind) {
  const Layout& l = layout;
  const bool megatron = framework == Framework::megatron || framework == Framework::neox;
  const View view(
      model, l, 0,
      {.pad_vocabulary = megatron, .fuse_projections = megatron, .fuse_qkv = framework == Framework::textbook});
  Schedule schedule;
  TensorRules rules;
  rules.reduce_dtype = l.dtype;
  rules.regather = rules.async_backward = framework == Framework::megatron;
  rules.overlap_forward = l.flags.tp_comm_overlap;
  if (framework == Framework::megatron) rules.main_gradients = megatron_gradients(l);
  rules.eager_experts = framework == Framework::megatron;
  rules.whole_model = framework != Framework::textbook;
  rules.expert_tensor = rules.routing_traffic = framework == Framework::megatron;
  const LayerWriter writer(view, schedule, rules);
  const Schedule::BlockId to = schedule.add_block();
  const bool train = l.mode == Mode::train;
  if (block == BlockKind::embedding) {
    writer.embedding_forward(to);
    if (train) writer.embedding_backward(to);
  } else if (block == BlockKind::head) {
    writer.head_forward(to);
    if (train) writer.head_backward(to);
  } else {
    writer.forward(to, kind);
    if (train) writer.backward(to, kind);
  }
  std::vector<Entry> entries;
  const std::function<void(Schedule::BlockId)> expand = [&](Schedule::BlockId id) {
    for (const Schedule::Node& node : schedule.block(id)) {
      if (!node.is_block) entries.push_back(schedule.entries()[node.index]);
      else
        for (Count i = 0; i < node.repeat; ++i) expand(node.index);
    }
  };
  expand(to);
  return entries;
}

Count busiest_rank(const Model& model, const Layout& layout, Framework framework) {
  if (layout.pp == 1) return 0;
  Count best = 0;
  double most = -1;
  // Stages between the first two and the last two equal their neighbours, unless layers divide unevenly; then
  // the first stages hold the extra layers.
  for (int stage = 0; stage < layout.pp; ++stage) {
    if (stage > 1 && stage < layout.pp - 2 && model.layers % (Count{layout.pp} * layout.virtual_stages) == 0 &&
        !model.moe())
      continue;
    Coordinates at;
    at.pp = stage;
    const Count rank = rank_of(layout, at);
    const double wire = total_wire_bytes(make_schedule(model, layout, framework, rank));
    if (wire > most * (1 + 1e-12)) {
      most = wire;
      best = rank;
    }
  }
  return best;
}

std::vector<Bucket> fill_buckets(const std::vector<LocalTensor>& tensors, bool expert, Count first_limit, Count limit) {
  std::vector<Bucket> buckets;
  Bucket open;
  for (auto t = tensors.rbegin(); t != tensors.rend(); ++t) {
    if (t->expert() != expert) continue;
    open.elements = sum(open.elements, t->elements, "gradient bucket");
    open.last_layer = t->layer;
    if (open.elements < (buckets.empty() ? first_limit : limit)) continue;
    buckets.push_back(open);
    open = {};
  }
  if (open.elements > 0) buckets.push_back(open);
  return buckets;
}

}  // namespace medley::plan

#include "shape/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <medley/error.hpp>

#include "cost/kernel_time.hpp"
#include "plan/frameworks.hpp"
#include "plan/layer.hpp"

namespace medley::shape {
namespace {

// The names that tables and papers use for the modules of a schedule.
constexpr std::array<std::pair<std::string_view, std::string_view>, 49> operator_names{{
    {"attention.qkv", "qkv"},
    {"attention.q", "q"},
    {"attention.k", "k"},
    {"attention.v", "v"},
    {"attention.projection", "projection"},
    {"attention.q_a", "q down"},
    {"attention.q_b", "q up"},
    {"attention.kv_a", "kv down"},
    {"attention.kv_b", "kv up"},
    {"attention.absorb_keys", "absorb keys"},
    {"attention.absorb_values", "absorb values"},
    {"attention.core", "attention"},
    {"attention.scores", "score"},
    {"attention.values", "values"},
    {"attention.softmax", "softmax"},
    {"attention.mask", "scale, mask and cast"},
    {"attention.dropout", "attention dropout"},
    {"attention.transpose", "transpose heads"},
    {"attention.split", "split heads"},
    {"attention.rotary", "rotary"},
    {"mlp.gate_up", "mlp gate and up"},
    {"mlp.gate", "mlp gate"},
    {"mlp.up", "mlp up"},
    {"mlp.down", "mlp down"},
    {"mlp.activation", "activation"},
    {"mlp.router", "router"},
    {"mlp.permute", "permute"},
    {"mlp.unpermute", "combine"},
    {"mlp.experts.gate_up", "expert gate and up"},
    {"mlp.experts.gate", "expert gate"},
    {"mlp.experts.up", "expert up"},
    {"mlp.experts.down", "expert down"},
    {"mlp.experts.activation", "expert activation"},
    {"mlp.shared.gate_up", "shared gate and up"},
    {"mlp.shared.gate", "shared gate"},
    {"mlp.shared.up", "shared up"},
    {"mlp.shared.down", "shared down"},
    {"mlp.shared.activation", "shared activation"},
    {"mlp.shared_gate", "shared scale"},
    {"norm_1", "norm"},
    {"norm_2", "norm"},
    {"residual_1", "residual"},
    {"residual_2", "residual"},
    {"bias", "bias gradients"},
    {"fp8_cast", "fp8 cast"},
    {"head", "logits"},
    {"head.project_out", "project out"},
    {"embedding.project_in", "project in"},
    {"final_norm", "final norm"},
}};

std::string_view display_name(std::string_view module) {
  const auto* found = std::ranges::find(operator_names, module, [](const auto& pair) { return pair.first; });
  if (found != operator_names.end()) return found->second;
  for (const std::string_view plain : {"embedding", "positions", "loss", "adam"})
    if (module == plain) return plain;
  return "linear";
}

Pass pass_of(const plan::Entry& entry) {
  switch (entry.phase) {
    case plan::Phase::forward: return Pass::forward;
    case plan::Phase::recompute: return Pass::recompute;
    case plan::Phase::optimizer: return Pass::update;
    default:
      if (entry.kind != plan::Kind::gemm) return Pass::backward;
      return entry.gemm.layout == "NT" ? Pass::wgrad : Pass::dgrad;
  }
}

Operator operator_of(const plan::Entry& entry) {
  Operator op{.name = display_name(entry.module), .pass = pass_of(entry), .work = Stream{}, .entry = entry};
  if (entry.kind == plan::Kind::gemm) {
    op.work = cublas_gemm(entry.gemm, entry.dtype);
  } else if (entry.kind == plan::Kind::attention) {
    const plan::Attention& a = entry.attention;
    op.work = Attention{.batch = a.batch,
                        .heads = a.heads,
                        .kv_heads = a.kv_heads,
                        .seq_q = a.queries,
                        .seq_k = a.keys,
                        .head_dim = (a.head_dim + a.value_dim) / 2,
                        .causal = a.causal,
                        .share = a.share};
    if (a.share < 1) op.name = "window attention";
  } else {
    op.count = entry.kernels;
    op.work = Stream{entry.stream, double(entry.bytes) / double(entry.kernels)};
  }
  return op;
}

Operators operators_of(const std::vector<plan::Entry>& entries) {
  Operators out;
  for (const plan::Entry& entry : entries)
    if (entry.kind != plan::Kind::comm && entry.kind != plan::Kind::wait) out.push_back(operator_of(entry));
  return out;
}

}  // namespace

std::string_view name(Mode mode) noexcept {
  constexpr std::array<std::string_view, 3> names{"train", "prefill", "decode"};
  return names[std::size_t(mode)];
}

Mode parse_mode(std::string_view text) {
  for (auto mode : {Mode::train, Mode::prefill, Mode::decode})
    if (text == name(mode)) return mode;
  throw Error(ErrorKind::invalid, fmt::format("unknown mode '{}': it is train, prefill or decode", text));
}

std::string_view name(Pass pass) noexcept {
  constexpr std::array<std::string_view, 6> names{"forward", "dgrad", "wgrad", "backward", "recompute", "update"};
  return names[std::size_t(pass)];
}

std::string_view name(const Block& block) noexcept {
  if (block.kind == plan::BlockKind::embedding) return "embedding";
  if (block.kind == plan::BlockKind::head) return "head";
  return block.layer.moe ? "moe layer" : "layer";
}

std::string Operator::label() const { return fmt::format("{} {}", name, shape::name(pass)); }

double Operator::flops() const {
  double one = 0;
  if (const auto* gemm = std::get_if<Gemm>(&work)) one = gemm->flops();
  // the backward kernel recomputes the scores: five products, the forward kernel has two
  if (const auto* fused = std::get_if<Attention>(&work)) one = fused->flops() * (pass == Pass::backward ? 2.5 : 1.0);
  return one * double(count);
}

Count Workload::tokens() const {
  if (layout.mode == Mode::decode) return layout.micro_batch;
  return plan::product({layout.micro_batch, plan::ceil_div(layout.seq, layout.cp)}, "tokens of a micro-batch");
}

Count Workload::head_tokens() const { return layout.mode == Mode::train ? tokens() : layout.micro_batch; }

GemmType Workload::type() const {
  return layout.flags.fp8 ? GemmType::fp8 : layout.dtype == DType::f16 ? GemmType::fp16 : GemmType::bf16;
}

std::vector<plan::Entry> block_entries(const Model& model, const Workload& work, const Block& block) {
  return plan::block_entries(model, plan::as_run_by(model, work.layout, work.framework), work.framework, block.kind,
                             block.layer);
}

Operators layer_operators(const Model& model, const Workload& work, plan::LayerKind kind) {
  return operators_of(block_entries(model, work, {plan::BlockKind::layer, kind}));
}

Operators embedding_operators(const Model& model, const Workload& work) {
  return operators_of(block_entries(model, work, {plan::BlockKind::embedding}));
}

Operators head_operators(const Model& model, const Workload& work) {
  return operators_of(block_entries(model, work, {plan::BlockKind::head}));
}

Operators optimizer_operators(Count parameters) {
  return {operator_of(
      plan::memory_bound(plan::product({parameters, plan::adam_bytes_per_parameter}), plan::Phase::optimizer, "adam"))};
}

}  // namespace medley::shape

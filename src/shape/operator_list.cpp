#include "shape/operator_list.hpp"

#include <algorithm>
#include <array>

#include "plan/view.hpp"

namespace medley::shape {
namespace {

// What tables and papers call the matrices that plan/tensors.cpp registers.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> matrix_names{{
    {"attention.qkv", "qkv"},
    {"attention.q", "q"},
    {"attention.k", "k"},
    {"attention.v", "v"},
    {"attention.projection", "projection"},
    {"attention.q_a", "q down"},
    {"attention.q_b", "q up"},
    {"attention.kv_a", "kv down"},
    {"attention.kv_b", "kv up"},
    {"mlp.gate_up", "mlp gate and up"},
    {"mlp.gate", "mlp gate"},
    {"mlp.up", "mlp up"},
    {"mlp.down", "mlp down"},
    {"mlp.router", "router"},
    {"mlp.experts.gate_up", "expert gate and up"},
    {"mlp.experts.gate", "expert gate"},
    {"mlp.experts.up", "expert up"},
    {"mlp.experts.down", "expert down"},
    {"mlp.shared.gate_up", "shared gate and up"},
    {"mlp.shared.gate", "shared gate"},
    {"mlp.shared.up", "shared up"},
    {"mlp.shared.down", "shared down"},
    {"mlp.shared_gate", "shared scale"},
    {"head", "logits"},
    {"head.project_out", "project out"},
    {"embedding.project_in", "project in"},
}};

std::string_view display_name(std::string_view tensor) {
  const std::string_view module = tensor.substr(0, tensor.rfind('.'));
  const auto* found = std::ranges::find(matrix_names, module, [](const auto& pair) { return pair.first; });
  return found != matrix_names.end() ? found->second : "linear";
}

Model rank_model(Model model, const Layout& layout) {
  model.fused_qkv = true;  // one product for queries, keys and values, as Megatron and vLLM run it
  return plan::local_model(std::move(model), layout);
}

}  // namespace

OperatorList::OperatorList(const Model& model_, const Workload& work_)
    : model(model_), work(work_), local(rank_model(model_, work_.layout)), tokens(work_.tokens()) {
  const double split = work.layout.sp ? double(work.layout.tp) : 1.0;
  kept = double(tokens) * double(model.hidden) * activation_bytes / split;
}

void OperatorList::gemm(std::string_view name, Pass pass, Count m, Count n, Count k, Count batch,
                        GemmLayout layout) {
  list_.push_back(
      {.name = name,
       .pass = pass,
       .work =
           Gemm{.name = {}, .m = m, .n = n, .k = k, .batch = batch, .layout = layout, .type = work.type}});
}

void OperatorList::linear(std::string_view name, Count tokens_, Count in, Count out, Count batch) {
  gemm(name, Pass::forward, out, tokens_, in, batch, GemmLayout::TN);
  if (!training()) return;
  gemm(name, Pass::dgrad, in, tokens_, out, batch, GemmLayout::NN);
  gemm(name, Pass::wgrad, in, out, tokens_, batch, GemmLayout::NT);
}

void OperatorList::linear(const plan::Tensor& weight, Count tokens_) {
  linear(display_name(weight.name), tokens_, weight.columns, weight.rows, weight.copies);
}

void OperatorList::attention(std::string_view name, const Attention& attention) {
  list_.push_back(
      {.name = name, .pass = Pass::forward, .work = attention, .count = 1, .kernel = work.kernel});
  if (training())
    list_.push_back(
        {.name = name, .pass = Pass::backward, .work = attention, .count = 1, .kernel = work.kernel});
}

void OperatorList::chain(std::string_view name, double bytes, Passes forward, Passes backward) {
  const auto add = [&](Pass pass, const Passes& passes) {
    const Count kernels = work.compiled ? 1 : passes.kernels;
    const double moved = bytes * (work.compiled ? passes.compiled : passes.eager) / double(kernels);
    if (moved > 0)
      list_.push_back(
          {.name = name, .pass = pass, .work = Stream{StreamOp::elementwise, moved}, .count = kernels});
  };
  add(Pass::forward, forward);
  if (training()) add(Pass::backward, backward);
}

void OperatorList::stream(std::string_view name, StreamOp op, double forward, double backward, Count count) {
  list_.push_back({.name = name, .pass = Pass::forward, .work = Stream{op, forward}, .count = count});
  if (!training() || backward <= 0) return;
  const StreamOp back = op == StreamOp::layer_norm ? StreamOp::layer_norm_backward : op;
  list_.push_back({.name = name, .pass = Pass::backward, .work = Stream{back, backward}, .count = count});
}

}  // namespace medley::shape

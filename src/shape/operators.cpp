#include "shape/operators.hpp"

#include <fmt/format.h>

#include <array>
#include <medley/error.hpp>

#include "shape/operator_list.hpp"

namespace medley::shape {
namespace {

// Adam with an fp32 master copy: gradient (4), master and two moments read and written (24), bf16 copy
// written (2).
constexpr double adam_bytes = 30;

// A full recompute repeats every forward of the layer; a selective one (Megatron's) only the core of
// attention: scores, softmax and values, or the fused kernel.
bool recomputed(const Operator& op, plan::Recompute recompute) {
  if (op.pass != Pass::forward) return false;
  if (recompute == plan::Recompute::full) return true;
  return recompute == plan::Recompute::selective &&
         (op.name == "score" || op.name == "softmax" || op.name == "values" || op.name == "attention" ||
          op.name == "scale, mask and cast");
}

// Each bias is the sum of its layer's output gradients over the tokens: they are read once more.
void add_bias_gradients(OperatorList& list, const std::vector<plan::Tensor>& layer) {
  double width = 0;
  Count kernels = 0;
  for (const auto& tensor : layer) {
    if (tensor.part == plan::Part::norm || !tensor.name.ends_with(".bias")) continue;
    width += double(tensor.rows) * double(tensor.part == plan::Part::expert ? list.model.top_k : 1);
    ++kernels;
  }
  if (kernels > 0)
    list.chain("bias gradients", double(list.tokens) * width * activation_bytes, {0, 0, 1}, {1, 1, kernels});
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
  constexpr std::array<std::string_view, 6> names{"forward",  "dgrad",     "wgrad",
                                                  "backward", "recompute", "update"};
  return names[std::size_t(pass)];
}

std::string Operator::label() const {
  return fmt::format("{} {}", name, shape::name(pass));
}

double Operator::flops() const {
  double one = 0;
  if (const auto* gemm = std::get_if<Gemm>(&work)) one = gemm->flops();
  // the backward kernel recomputes the scores: five products where the forward has two
  if (const auto* fused = std::get_if<Attention>(&work))
    one = fused->flops() * (pass == Pass::backward ? 2.5 : 1.0);
  return one * double(count);
}

Count Workload::tokens() const {
  if (mode == Mode::decode) return layout.micro_batch;
  return plan::product({layout.micro_batch, plan::ceil_div(layout.seq, layout.cp)},
                       "tokens of a micro-batch");
}

Count Workload::head_tokens() const {
  return mode == Mode::train ? tokens() : layout.micro_batch;
}

Operators layer_operators(const Model& model, const Workload& work, bool moe) {
  OperatorList list(model, work);
  const auto layer = plan::layer_tensors(list.local, moe);
  add_attention(list, layer);
  add_mlp(list, layer, moe);
  add_bias_gradients(list, layer);
  Operators all = list.take();
  if (work.mode != Mode::train || work.layout.recompute == plan::Recompute::none) return all;
  const std::size_t once = all.size();
  for (std::size_t i = 0; i < once; ++i) {
    if (!recomputed(all[i], work.layout.recompute)) continue;
    all.push_back(all[i]);
    all.back().pass = Pass::recompute;
  }
  return all;
}

Operators embedding_operators(const Model& model, const Workload& work) {
  OperatorList list(model, work);
  const double rows = double(list.tokens) * double(model.hidden) * activation_bytes;
  list.stream("embedding", StreamOp::elementwise, 2 * rows,
              3 * rows);  // gather; scatter-add reads what it adds to
  if (model.positions == plan::Positions::learned)
    list.stream("positions", StreamOp::elementwise, 3 * rows, rows);
  for (const auto& tensor : plan::embedding_tensors(list.local))
    if (tensor.name == "embedding.project_in.weight") list.linear(tensor, list.tokens);
  if (model.embedding_norm) list.stream("embedding norm", StreamOp::layer_norm, 2 * list.kept, 3 * list.kept);
  return list.take();
}

Operators head_operators(const Model& model, const Workload& work) {
  OperatorList list(model, work);
  const Count tokens = work.head_tokens();
  const double rows = double(tokens) * double(model.hidden) * activation_bytes;
  if (model.final_norm) list.stream("final norm", StreamOp::layer_norm, 2 * rows, 3 * rows);
  for (const auto& tensor : plan::head_tensors(list.local))
    if (tensor.matrix) list.linear(tensor, tokens);
  if (list.training()) {
    // Loss in fp32. In one kernel, 6 bytes a logit each way; eagerly the cast, the softmax and the label's
    // logit are kernels of their own: 14 bytes forward, 18 backward.
    const double logits = double(tokens) * double(list.local.vocab);
    list.chain("loss", logits, {14, 6, 3}, {18, 6, 3});
  }
  return list.take();
}

Operators optimizer_operators(Count parameters) {
  return {{.name = "adam",
           .pass = Pass::update,
           .work = Stream{StreamOp::elementwise, adam_bytes * double(parameters)}}};
}

}  // namespace medley::shape

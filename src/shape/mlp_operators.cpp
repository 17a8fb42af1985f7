// The MLP block as operators: plain or gated, dense or a mixture of experts with shared ones beside them.
#include <algorithm>
#include <cmath>

#include "shape/operator_list.hpp"

namespace medley::shape {
namespace {

// Activation between up and down: read and write forward; the gated form reads two and writes one.
// Backward reads its inputs and the gradient and writes a gradient for each input.
void add_activation(OperatorList& list, double tokens, Count width) {
  const double bytes = tokens * double(width) * activation_bytes;
  list.stream("activation", StreamOp::elementwise, bytes * (list.model.gated ? 3 : 2), bytes * (list.model.gated ? 5 : 3));
}

struct Names {
  std::string_view up, gate_up, down;
};

// `batch` MLPs side by side, each of `tokens` tokens and `width` columns on this rank.
void add_mlp_of(OperatorList& list, const Names& names, Count tokens, Count width, Count batch) {
  const Count h = list.model.hidden;
  if (list.model.gated && list.model.fused_gate)
    list.linear(names.gate_up, tokens, h, 2 * width, 1, batch);
  else
    list.linear(list.model.gated ? names.gate_up : names.up, tokens, h, width, list.model.gated ? 2 : 1, batch);
  add_activation(list, double(tokens) * double(batch), width);
  list.linear(names.down, tokens, width, h, 1, batch);
}

// Routed tokens spread evenly: the mean over steps, and what a balancing loss aims at. With few tokens (decode) not
// every expert is met: of E experts, k·T draws meet E·(1 − (1 − 1/E)^(kT)) on average.
void add_experts(OperatorList& list) {
  const Model& model = list.model;
  const Layout& layout = list.work.layout;
  const Count experts = model.experts;
  list.linear("router", list.tokens, model.hidden, experts);
  const double routed = double(list.tokens) * double(model.top_k) * layout.flags.capacity_factor;
  const double drawn = routed * layout.ep;  // the tokens of all expert-parallel ranks meet here
  const double met = double(experts) * (1 - std::pow(1 - 1 / double(experts), drawn));
  const Count local = std::max<Count>(1, std::llround(met / layout.ep));
  const Count each = std::max<Count>(1, Count(std::ceil(routed / double(local))));
  const double moved = 2 * routed * double(model.hidden) * activation_bytes;
  list.stream("permute", StreamOp::elementwise, moved, moved);
  add_mlp_of(list, {"expert up", "expert gate and up", "expert down"}, each, plan::ceil_div(model.moe_ffn, list.tp), local);
  list.stream("combine", StreamOp::elementwise, moved, moved);
  if (model.shared_ffn > 0)
    add_mlp_of(list, {"shared up", "shared gate and up", "shared down"}, list.tokens,
               plan::ceil_div(model.shared_ffn, list.tp), 1);
}

}  // namespace

void add_mlp(OperatorList& list, bool moe) {
  if (list.model.norms_per_layer > 1)
    list.stream("norm", StreamOp::layer_norm, 2 * list.kept, 3 * list.kept, list.model.norms_per_layer - 1);
  if (moe)
    add_experts(list);
  else
    add_mlp_of(list, {"mlp up", "mlp gate and up", "mlp down"}, list.tokens, plan::ceil_div(list.model.ffn, list.tp), 1);
  list.stream("residual", StreamOp::elementwise, 3 * list.kept, 3 * list.kept);
}

}  // namespace medley::shape

// The MLP block as operators: plain or gated, dense or a mixture of experts with shared ones beside them.
#include <algorithm>
#include <cmath>

#include "shape/operator_list.hpp"

namespace medley::shape {
namespace {

// Activation between up and down. In one kernel, the plain form reads and writes once, backward reads the
// gradient, too; the gated form has one more input. Eagerly the gate's product is a kernel of its own, two
// backward.
void add_activation(OperatorList& list, double tokens, Count width) {
  const double bytes = tokens * double(width) * activation_bytes;
  if (list.model.gated)
    list.chain("activation", bytes, {5, 3, 2}, {9, 5, 3});
  else
    list.chain("activation", bytes, {2, 2, 1}, {3, 3, 1});
}

// The matrices of one MLP, `copies` of them side by side, with the activation before the last.
void add_matrices(OperatorList& list, const std::vector<plan::Tensor>& layer, std::string_view module,
                  Count tokens, Count copies) {
  for (plan::Tensor tensor : layer) {
    if (!tensor.matrix || !tensor.name.starts_with(module)) continue;
    tensor.copies = copies;
    if (tensor.shard == plan::Shard::row)
      add_activation(list, double(tokens) * double(copies), tensor.columns);
    list.linear(tensor, tokens);
  }
}

// Routed tokens spread evenly: the mean over steps, and what a balancing loss aims at. With few tokens
// (decode) not every expert is met: of E experts, k·T draws meet E·(1 − (1 − 1/E)^(kT)) on average.
void add_experts(OperatorList& list, const std::vector<plan::Tensor>& layer) {
  const Layout& layout = list.work.layout;
  const double experts = double(list.model.experts);
  add_matrices(list, layer, "mlp.router", layout.sp ? plan::ceil_div(list.tokens, layout.tp) : list.tokens,
               1);
  const double routed = double(list.tokens) * double(list.model.top_k) * layout.flags.capacity_factor;
  const double met = experts * (1 - std::pow(1 - 1 / experts, routed * layout.ep));
  const Count local = std::max<Count>(1, std::llround(met / layout.ep));
  const Count each = std::max<Count>(1, Count(std::ceil(routed / double(local))));
  const double moved = 2 * routed * double(list.model.hidden) * activation_bytes;
  list.stream("permute", StreamOp::elementwise, moved, moved);
  add_matrices(list, layer, "mlp.experts.", each, local);
  list.stream("combine", StreamOp::elementwise, moved, moved);
  add_matrices(list, layer, "mlp.shared", list.tokens, 1);
}

}  // namespace

void add_mlp(OperatorList& list, const std::vector<plan::Tensor>& layer, bool moe) {
  if (list.model.norms_per_layer > 1)
    list.stream("norm", StreamOp::layer_norm, 2 * list.kept, 3 * list.kept, list.model.norms_per_layer - 1);
  if (moe)
    add_experts(list, layer);
  else
    add_matrices(list, layer, "mlp.", list.tokens, 1);
  list.stream("residual", StreamOp::elementwise, 3 * list.kept, 3 * list.kept);
}

}  // namespace medley::shape

// A mixture-of-experts MLP: routing, token dispatch, the experts' grouped GEMMs, and token combine.
#include <algorithm>
#include <cmath>

#include "plan/layer.hpp"

namespace medley::plan {

void LayerWriter::send_tokens(BlockId to, Phase phase, bool forward_direction, bool hidden) const {
  const Layout& l = view_.layout;
  const Count routed = view_.routed_tokens(), tokens = product({routed, view_.model.hidden, view_.e}, "routed tokens");
  const auto add = [&](Count bytes, DType dtype, std::string_view why) {
    Entry entry = comm(Op::all_to_all, "ep", l.ep, bytes, dtype, phase, "mlp.experts", why);
    add_comm(schedule_, to, hidden ? async(std::move(entry), token::experts) : std::move(entry));
  };
  add(tokens, l.dtype, forward_direction ? "tokens go to their experts" : "token gradients come back");
  if (rules_.routing_traffic) {
    add(product({routed, 4}), DType::f32,
        forward_direction ? "routing probabilities go with them" : "gradients of the routing probabilities");
  }
}

void LayerWriter::return_tokens(BlockId to, Phase phase, bool forward_direction, bool hidden) const {
  const Layout& l = view_.layout;
  Entry entry =
      comm(Op::all_to_all, "ep", l.ep, product({view_.routed_tokens(), view_.model.hidden, view_.e}, "routed tokens"),
           l.dtype, phase, "mlp.experts",
           forward_direction ? "expert outputs return to their tokens" : "output gradients go to the experts");
  add_comm(schedule_, to, hidden ? async(std::move(entry), token::experts) : std::move(entry));
}

// With overlap_moe_expert_parallel_comm, Megatron runs the forward pass of one micro-batch together with the
// backward pass of another, and each hides the other's token exchanges. One pass alone shows the same time
// when its exchanges start with the layer and end with it.
bool LayerWriter::exchanges_early(bool moe) const {
  return moe && rules_.overlap_experts && view_.layout.ep > 1 && view_.micro_batches > 1;
}
void LayerWriter::exchange_early(BlockId to, Phase phase) const {
  const bool forward = phase != Phase::backward;
  send_tokens(to, phase, forward, true);
  return_tokens(to, phase, forward, true);
}

// The group over which one expert is sharded.
std::string_view LayerWriter::expert_tensor_group() const {
  return view_.layout.expert_tensor() == view_.layout.tp ? "tp" : "etp";
}

// Token dispatch: all_to_all over ep, then (experts sharded over tp) an all_gather over tp. In backward the
// gradients take the reverse path: scatter first, then all_to_all.
void LayerWriter::dispatch(BlockId to, Phase phase, bool forward_direction) const {
  const Layout& l = view_.layout;
  const Count gathered =
      product({view_.routed_tokens(), view_.model.hidden, view_.e, l.expert_tensor()}, "routed tokens");
  const auto over_ep = [&] {
    if (!exchanges_early(true)) send_tokens(to, phase, forward_direction, false);
  };
  const auto over_tp = [&] {
    if (!rules_.expert_tensor) return;
    add_comm(schedule_, to,
             comm(forward_direction ? Op::all_gather : Op::reduce_scatter, expert_tensor_group(), l.expert_tensor(),
                  gathered, l.dtype, phase, "mlp.experts",
                  forward_direction ? "experts are cut over tp: each slice needs all tokens"
                                    : "token gradients of the expert slices are added"));
  };
  if (forward_direction) {
    over_ep();
    over_tp();
  } else {
    over_tp();
    over_ep();
  }
}

void LayerWriter::combine(BlockId to, Phase phase, bool forward_direction) const {
  const Layout& l = view_.layout;
  const Count tokens = product({view_.routed_tokens(), view_.model.hidden, view_.e}, "routed tokens");
  const auto over_ep = [&] {
    if (!exchanges_early(true)) return_tokens(to, phase, forward_direction, false);
  };
  const auto over_tp = [&] {
    if (!rules_.expert_tensor) return;
    add_comm(
        schedule_, to,
        comm(forward_direction ? Op::reduce_scatter : Op::all_gather, expert_tensor_group(), l.expert_tensor(),
             product({tokens, l.expert_tensor()}, "routed tokens"), l.dtype, phase, "mlp.experts",
             forward_direction ? "outputs of the expert slices are added" : "expert slices need all output gradients"));
  };
  if (forward_direction) {
    over_tp();
    over_ep();
  } else {
    over_ep();
    over_tp();
  }
}

// Megatron-Core's grouped MLP (experts.py, fused_bias_geglu.py) clamps gate and up in eager PyTorch: two
// clamps of strided halves and a concatenation, in backward comparisons and selections. On an H200 they take
// as long as 7.9 and 16.1 passes at the rate of a copy (bench/shape/data/h200_steps.csv). The fused grouped
// MLP does all of it inside its products.
void LayerWriter::expert_activation(BlockId to, Count tokens, Count width, Phase phase) const {
  if (view_.layout.flags.fused_grouped_mlp) return;
  if (view_.model.clamped_gate) {
    const Count bytes = product({2, tokens, width, view_.e}, "clamped gate");
    const bool kept_apart = rules_.eager_experts;
    chain(to, bytes,
          phase == Phase::backward ? Passes{16.1, kept_apart ? 16.1 : 0, 8, kept_apart ? 8 : 1}
                                   : Passes{7.9, kept_apart ? 7.9 : 0, 3, kept_apart ? 3 : 1},
          phase, "mlp.experts.clamp");
  }
  activation(to, tokens, width, phase, "mlp.experts.activation");
}

// It also adds the biases of the experts' outputs expert by expert, weighted by the router's f32
// probabilities: outer product, sum and concatenation pass through memory in f32, as long as 23.3 passes over
// the outputs at the rate of a copy, and 29.8 in backward.
void LayerWriter::expert_biases(BlockId to, Count tokens, Count local, Phase phase) const {
  if (!rules_.eager_experts || !view_.model.mlp_bias || view_.layout.flags.fused_grouped_mlp) return;
  const bool backward = phase == Phase::backward;
  const int kernels = static_cast<int>(backward ? 7 * local + 2 : 2 * local + 2);
  const double passes = backward ? 29.8 : 23.3;
  chain(to, product({tokens, view_.model.hidden, view_.e}, "expert outputs"), {passes, passes, kernels, kernels}, phase,
        "mlp.experts.bias");
}

// Even routing: the mean over steps, and the aim of a balancing loss. With few tokens (decode) some experts
// get none: n draws reach E·(1 − (1 − 1/E)^n) of E experts on average.
void LayerWriter::expert_gemms(BlockId to, Phase phase) const {
  // Experts sharded over tp process the tokens of the whole tensor group; whole experts those of their own
  // rank.
  const Count tokens =
      product({view_.routed_tokens(), rules_.drops_duplicates ? Count{1} : Count{view_.layout.expert_tensor()}},
              "routed tokens");
  const double experts = static_cast<double>(view_.model.experts);
  const double met = experts * (1 - std::pow(1 - 1 / experts, static_cast<double>(tokens) * view_.layout.ep));
  const Count local = std::clamp<Count>(std::llround(met / view_.layout.ep), 1, view_.local_experts());
  const Count each = std::max<Count>(1, ceil_div(tokens, local));
  const Count width = rules_.drops_duplicates ? view_.model.moe_ffn : view_.local.moe_ffn;
  std::vector<Tensor> met_experts;
  for (const Tensor* w : matrices(view_.moe_layer, "mlp.experts")) {
    met_experts.push_back(*w);
    met_experts.back().copies = local;
  }
  if (phase == Phase::backward) {
    expert_biases(to, tokens, local, phase);
    if (view_.layout.flags.recompute_modules.expert_activation) expert_activation(to, tokens, width, Phase::recompute);
    for (auto w = met_experts.rbegin(); w != met_experts.rend(); ++w) {
      if (w->shard != Shard::row) continue;
      input_gradient(to, *w, each);
      weight_gradient(to, *w, each);
    }
    expert_activation(to, tokens, width, phase);
    for (const Tensor& w : met_experts) {
      if (w.shard == Shard::row) continue;
      input_gradient(to, w, each);
      weight_gradient(to, w, each);
    }
    return;
  }
  for (const Tensor& w : met_experts) {
    if (w.shard == Shard::row) expert_activation(to, tokens, width, phase);
    linear(to, w, each, phase);
  }
  expert_biases(to, tokens, local, phase);
}

// Tokens are permuted to the order of their experts before they are sent, and back once they have returned.
// Where a rank has several experts, it also sorts the chunks that arrive from the other ranks by expert, and
// back.
void LayerWriter::permute(BlockId to, Phase phase, const char* module) const {
  const Count routed =
      product({view_.routed_tokens(), rules_.drops_duplicates ? Count{1} : Count{view_.layout.expert_tensor()}});
  const bool sorts = view_.layout.ep > 1 && view_.local_experts() > 1 && !rules_.drops_duplicates;
  stream(to, StreamOp::elementwise, product({sorts ? 4 : 2, routed, view_.model.hidden, view_.e}, "routed tokens"),
         phase, module);
}

// The choice of experts: logits in f32, softmax, top-k, the balancing loss, the map of rows and the counts of
// tokens per expert: small kernels, which only the host notices (counted in Megatron-Core's router and
// all_to_all dispatcher).
void LayerWriter::route(BlockId to, Phase phase) const {
  Entry entry =
      memory_bound(product({view_.sharded_tokens, view_.model.experts, 4, 6}, "routing"), phase, "mlp.router");
  entry.dtype = DType::f32;
  entry.kernels = phase == Phase::backward ? 20 : 30;
  if (entry.bytes > 0) schedule_.add(to, std::move(entry));
}

void LayerWriter::experts_forward(BlockId to, Phase phase) const {
  const Layout& l = view_.layout;
  for (const Tensor* w : matrices(view_.moe_layer, "mlp.router")) linear(to, *w, view_.sharded_tokens, phase);
  route(to, phase);
  if (rules_.routing_traffic) {
    const Count group = Count{l.expert_tensor()} * l.ep;
    add_comm(schedule_, to,
             comm(Op::all_gather, "tp_ep", group, product({view_.model.experts, 8, group}, "token counts"), DType::i64,
                  phase, "mlp.router", "how many tokens each rank sends to each expert"));
  }
  permute(to, phase, "mlp.permute");
  dispatch(to, phase, true);
  expert_gemms(to, phase);
  combine(to, phase, true);
  permute(to, phase, "mlp.unpermute");
  gather_dropped(to, phase);
  const auto shared = matrices(view_.moe_layer, "mlp.shared");
  if (shared.empty()) return;
  enter(to, phase, "mlp.shared");
  std::vector<const Tensor*> rows;
  for (const Tensor* w : shared) {
    if (w->shard == Shard::row) rows.push_back(w);
    else linear(to, *w, view_.tokens, phase);
  }
  if (l.sp && rules_.overlap_forward) schedule_.add(to, wait_for(token::tensor, phase));
  activation(to, view_.tokens, view_.local.shared_ffn, phase, "mlp.shared.activation");
  row_forward(to, rows, phase, "mlp.shared");
}

// DeepSpeed-MoE routes each token on one tensor rank only, which sends its output and its gradient to the
// others.
void LayerWriter::gather_dropped(BlockId to, Phase phase) const {
  if (!rules_.drops_duplicates) return;
  add_comm(schedule_, to,
           comm(Op::all_gather, "tp", view_.layout.tp, view_.activation_bytes(), view_.layout.dtype, phase,
                "mlp.experts", "each tensor rank routed its part of the tokens: all get all of them back"));
}

void LayerWriter::experts_backward(BlockId to) const {
  const auto shared = matrices(view_.moe_layer, "mlp.shared");
  if (!shared.empty()) {
    std::vector<const Tensor*> rows, columns;
    for (const Tensor* w : shared) (w->shard == Shard::row ? rows : columns).push_back(w);
    row_backward(to, rows, "mlp.shared");
    activation(to, view_.tokens, view_.local.shared_ffn, Phase::backward, "mlp.shared.activation");
    columns_backward(to, columns, "mlp.shared");
  }
  permute(to, Phase::backward, "mlp.unpermute");
  combine(to, Phase::backward, false);
  expert_gemms(to, Phase::backward);
  dispatch(to, Phase::backward, false);
  permute(to, Phase::backward, "mlp.permute");
  gather_dropped(to, Phase::backward);
  route(to, Phase::backward);
  for (const Tensor* w : matrices(view_.moe_layer, "mlp.router")) {
    input_gradient(to, *w, view_.sharded_tokens);
    weight_gradient(to, *w, view_.sharded_tokens);
  }
}

}  // namespace medley::plan

// A mixture-of-experts MLP: routing, the exchange of tokens, the experts' grouped GEMMs, and the way back.
#include "plan/layer.hpp"

namespace medley::plan {

// Tokens leave for their experts: all_to_all over ep, then (experts cut over tp) an all_gather over tp.
// Backwards the same path carries gradients the other way: scatter first, then all_to_all.
void LayerWriter::dispatch(BlockId to, Phase phase, bool forward_direction) const {
  const Layout& l = view_.layout;
  const Count routed = view_.routed_tokens(),
              tokens = product({routed, view_.model.hidden, view_.e}, "routed tokens");
  const Count gathered = product({tokens, l.tp}, "routed tokens");
  const auto over_ep = [&] {
    add_comm(schedule_, to,
             comm(Op::all_to_all, "ep", l.ep, tokens, l.dtype, phase, "mlp.experts",
                  forward_direction ? "tokens go to their experts" : "token gradients come back"));
    if (rules_.routing_traffic) {
      add_comm(schedule_, to,
               comm(Op::all_to_all, "ep", l.ep, product({routed, 4}), DType::f32, phase, "mlp.experts",
                    forward_direction ? "routing probabilities go with them"
                                      : "gradients of the routing probabilities"));
    }
  };
  const auto over_tp = [&] {
    if (!rules_.expert_tensor) return;
    add_comm(schedule_, to,
             comm(forward_direction ? Op::all_gather : Op::reduce_scatter, "tp", l.tp, gathered, l.dtype,
                  phase, "mlp.experts",
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
    add_comm(schedule_, to,
             comm(Op::all_to_all, "ep", l.ep, tokens, l.dtype, phase, "mlp.experts",
                  forward_direction ? "expert outputs return to their tokens"
                                    : "output gradients go to the experts"));
  };
  const auto over_tp = [&] {
    if (!rules_.expert_tensor) return;
    add_comm(schedule_, to,
             comm(forward_direction ? Op::reduce_scatter : Op::all_gather, "tp", l.tp,
                  product({tokens, l.tp}, "routed tokens"), l.dtype, phase, "mlp.experts",
                  forward_direction ? "outputs of the expert slices are added"
                                    : "expert slices need all output gradients"));
  };
  if (forward_direction) {
    over_tp();
    over_ep();
  } else {
    over_ep();
    over_tp();
  }
}

void LayerWriter::expert_gemms(BlockId to, Phase phase) const {
  const Count gathered =
      product({view_.routed_tokens(), rules_.expert_tensor ? view_.layout.tp : 1}, "routed tokens");
  const Count m =
      std::max<Count>(1, gathered / view_.local_experts());  // even routing: the mean over experts
  for (const Tensor* w : matrices(view_.moe_layer, "mlp.experts")) {
    if (phase == Phase::backward) {
      input_gradient(to, *w, m);
      weight_gradient(to, *w, m);
    } else {
      linear(to, *w, m, phase);
    }
  }
  memory(to, product({gathered, view_.local.moe_ffn, view_.e, view_.model.gated ? 3 : 2}), phase,
         "mlp.experts.activation");
}

void LayerWriter::experts_forward(BlockId to, Phase phase) const {
  const Layout& l = view_.layout;
  for (const Tensor* w : matrices(view_.moe_layer, "mlp.router")) linear(to, *w, view_.sharded_tokens, phase);
  if (rules_.routing_traffic) {
    const Count group = Count{l.tp} * l.ep;
    add_comm(schedule_, to,
             comm(Op::all_gather, "tp_ep", group, product({view_.model.experts, 8, group}, "token counts"),
                  DType::i64, phase, "mlp.router", "how many tokens each rank sends to each expert"));
  }
  dispatch(to, phase, true);
  expert_gemms(to, phase);
  combine(to, phase, true);
  const auto shared = matrices(view_.moe_layer, "mlp.shared");
  if (shared.empty()) return;
  enter(to, phase, "mlp.shared");
  for (const Tensor* w : shared) linear(to, *w, view_.tokens, phase);
  leave(to, phase, "mlp.shared");
}

void LayerWriter::experts_backward(BlockId to) const {
  const auto shared = matrices(view_.moe_layer, "mlp.shared");
  if (!shared.empty()) {
    leave_backward(to, "mlp.shared");
    std::vector<const Tensor*> columns;
    for (const Tensor* w : shared) {
      if (w->shard != Shard::row) {
        columns.push_back(w);
        continue;
      }
      input_gradient(to, *w, view_.tokens);
      weight_gradient(to, *w, view_.tokens);
    }
    columns_backward(to, columns, "mlp.shared");
  }
  combine(to, Phase::backward, false);
  expert_gemms(to, Phase::backward);
  dispatch(to, Phase::backward, false);
  for (const Tensor* w : matrices(view_.moe_layer, "mlp.router")) {
    input_gradient(to, *w, view_.sharded_tokens);
    weight_gradient(to, *w, view_.sharded_tokens);
  }
}

}  // namespace medley::plan

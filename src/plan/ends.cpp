// The two ends of a model: embedding, and head with the loss.
#include "plan/layer.hpp"

namespace medley::plan {

void LayerWriter::embedding_forward(BlockId to) const {
  stream(to, StreamOp::elementwise, 2 * view_.activation_bytes(), Phase::forward, "embedding");
  if (view_.model.positions == Positions::learned)
    stream(to, StreamOp::elementwise, 3 * view_.activation_bytes(), Phase::forward, "positions");
  for (const Tensor* w : matrices(view_.embedding, "embedding.project_in"))
    linear(to, *w, view_.tokens, Phase::forward);
  if (view_.model.embedding_norm) norm(to, Phase::forward, "embedding_norm");
  if (!rules_.whole_model) return;
  // When positions need the whole sequence on every rank, Megatron cannot scatter the sum over the vocabulary
  // shards.
  const bool scatter =
      view_.layout.sp && !(rules_.reduces_learned_positions && view_.model.positions == Positions::learned);
  exchange(to, scatter ? Op::reduce_scatter : Op::all_reduce, view_.activation_bytes(), Phase::forward, "embedding",
           "each tensor rank looked up its part of the vocabulary", false);
}

void LayerWriter::embedding_backward(BlockId to) const {
  // The reduction is an identity in backward; under sequence parallelism the gradient shards are gathered.
  if (rules_.whole_model && view_.layout.sp) {
    exchange(to, Op::all_gather, view_.activation_bytes(), Phase::backward, "embedding",
             "gradient shards are gathered for the vocabulary shard", false);
  }
  if (view_.model.embedding_norm) norm(to, Phase::backward, "embedding_norm");
  for (const Tensor* w : matrices(view_.embedding, "embedding.project_in")) {
    input_gradient(to, *w, view_.tokens);
    weight_gradient(to, *w, view_.tokens);
  }
  // Scatter-add also reads its destination.
  stream(to, StreamOp::elementwise, 3 * view_.activation_bytes(), Phase::backward, "embedding");
  if (view_.model.positions == Positions::learned)
    stream(to, StreamOp::elementwise, view_.activation_bytes(), Phase::backward, "positions");
}

/// Inference needs only the logits of each sequence's last token.
Count LayerWriter::head_tokens() const {
  return view_.layout.mode == Mode::train ? view_.tokens : view_.layout.micro_batch;
}

// Loss in f32. In one kernel, 6 bytes per logit each way; in eager mode the cast, the softmax and the label's
// logit are separate kernels: 14 bytes forward, 18 backward.
void LayerWriter::head_forward(BlockId to) const {
  const Count tokens = head_tokens();
  if (view_.model.final_norm) norm(to, Phase::forward, "final_norm");
  if (rules_.whole_model) enter(to, Phase::forward, "head");
  for (const Tensor* w : matrices(view_.head, "head")) linear(to, *w, tokens, Phase::forward);
  if (rules_.whole_model && view_.layout.sp && rules_.overlap_forward)
    schedule_.add(to, wait_for(token::tensor, Phase::forward));
  if (view_.layout.mode != Mode::train) return;
  const Count logits = product({tokens, rules_.shard_loss ? view_.local.vocab : view_.model.vocab}, "logits");
  if (!rules_.shard_loss)
    add_comm(schedule_, to,
             comm(Op::all_gather, "tp", view_.layout.tp, product({tokens, view_.model.vocab, view_.e}, "logits"),
                  view_.layout.dtype, Phase::forward, "loss", "DTensor makes the logits whole for the loss"));
  chain(to, logits, rules_.loss_forward, Phase::forward, "loss");
  if (!rules_.whole_model || !rules_.shard_loss) return;
  const Count scalars = product({tokens, 4}, "loss");
  const auto reduce = [&](ReduceOp op, std::string_view why) {
    Entry entry = comm(Op::all_reduce, "tp", view_.layout.tp, scalars, DType::f32, Phase::forward, "loss", why);
    entry.reduce = op;
    add_comm(schedule_, to, std::move(entry));
  };
  // Megatron: predicted logit, then the sum; DTensor's loss_parallel: log_softmax first, then the label's
  // loss.
  reduce(ReduceOp::max, "largest logit over the vocabulary shards");
  if (rules_.loss_order == TensorRules::LossOrder::megatron) reduce(ReduceOp::sum, "logit of the label");
  reduce(ReduceOp::sum, "sum of exponentials over the vocabulary shards");
  if (rules_.loss_order == TensorRules::LossOrder::dtensor) reduce(ReduceOp::sum, "loss of the label's shard");
}

void LayerWriter::head_backward(BlockId to) const {
  const Count logits = product({view_.tokens, rules_.shard_loss ? view_.local.vocab : view_.model.vocab}, "logits");
  chain(to, logits, rules_.loss_backward, Phase::backward, "loss");
  if (rules_.whole_model) {
    columns_backward(to, matrices(view_.head, "head"), "head");
  } else {
    for (const Tensor* w : matrices(view_.head, "head")) {
      input_gradient(to, *w, view_.tokens);
      weight_gradient(to, *w, view_.tokens);
    }
  }
  if (view_.model.final_norm) norm(to, Phase::backward, "final_norm");
}

}  // namespace medley::plan

// The dense parts of a layer: projections with their tensor-parallel collectives, norms, MLP, embedding and
// head.
#include "plan/layer.hpp"

namespace medley::plan {

LayerWriter::LayerWriter(const View& view, Schedule& schedule, TensorRules rules)
    : view_(view), schedule_(schedule), rules_(rules) {}

void LayerWriter::memory(BlockId to, Count bytes, Phase phase, const char* module) const {
  Entry entry = memory_bound(bytes, phase, module);
  entry.dtype = view_.layout.dtype;
  schedule_.add(to, std::move(entry));
}

void LayerWriter::exchange(BlockId to, Op op, Count bytes, Phase phase, const char* module,
                           std::string_view why, bool hidden) const {
  const bool reduces = op == Op::all_reduce || op == Op::reduce_scatter;
  const DType dtype = reduces ? rules_.reduce_dtype : view_.layout.dtype;
  if (reduces) bytes = product({bytes / view_.e, static_cast<Count>(size_of(dtype))}, "activation");
  Entry entry = comm(op, "tp", view_.layout.tp, bytes, dtype, phase, module, why);
  add_comm(schedule_, to, hidden ? async(std::move(entry), token::tensor) : std::move(entry));
}

std::vector<const Tensor*> LayerWriter::matrices(const std::vector<Tensor>& tensors,
                                                 std::string_view prefix) const {
  std::vector<const Tensor*> out;
  for (const Tensor& t : tensors) {
    if (t.matrix && std::string_view(t.name).substr(0, prefix.size()) == prefix) out.push_back(&t);
  }
  return out;
}

namespace {

Entry gemm(const Tensor& weight, DType dtype, Phase phase, Gemm shape) {
  Entry entry;
  entry.kind = Kind::gemm;
  entry.phase = phase;
  entry.dtype = dtype;
  entry.module = weight.name.substr(0, weight.name.rfind('.'));
  entry.gemm = shape;
  return entry;
}

bool projection(const Tensor& t) {
  return t.name == "attention.projection.weight";
}

}  // namespace

void LayerWriter::linear(BlockId to, const Tensor& w, Count m, Phase phase) const {
  schedule_.add(to, gemm(w, view_.layout.dtype, phase, {m, w.rows, w.columns, w.copies, "TN"}));
}
void LayerWriter::input_gradient(BlockId to, const Tensor& w, Count m) const {
  schedule_.add(to, gemm(w, view_.layout.dtype, Phase::backward, {m, w.columns, w.rows, w.copies, "NN"}));
}
void LayerWriter::weight_gradient(BlockId to, const Tensor& w, Count m) const {
  schedule_.add(to, gemm(w, view_.layout.dtype, Phase::backward, {w.rows, w.columns, m, w.copies, "NT"}));
}

void LayerWriter::enter(BlockId to, Phase phase, const char* module) const {
  if (!view_.layout.sp) return;
  exchange(to, Op::all_gather, view_.activation_bytes(), phase, module,
           "sequence shards become the input of a column-parallel GEMM", rules_.overlap_forward);
}

void LayerWriter::leave(BlockId to, Phase phase, const char* module) const {
  if (view_.layout.sp) {
    exchange(to, Op::reduce_scatter, view_.activation_bytes(), phase, module,
             "row-parallel partial sums become sequence shards", rules_.overlap_forward);
  } else {
    exchange(to, Op::all_reduce, view_.activation_bytes(), phase, module,
             rules_.one_reduction && view_.model.parallel_block
                 ? "attention and MLP outputs of a parallel block are added, then reduced once"
                 : "row-parallel partial sums are added",
             false);
  }
  if (view_.layout.sp && rules_.overlap_forward) schedule_.add(to, wait_for(token::tensor, phase));
}

void LayerWriter::leave_backward(BlockId to, const char* module) const {
  if (!view_.layout.sp) return;
  exchange(to, Op::all_gather, view_.activation_bytes(), Phase::backward, module,
           "gradient shards become the input of a row-parallel GEMM", rules_.overlap_forward);
  if (rules_.overlap_forward) schedule_.add(to, wait_for(token::tensor, Phase::backward));
}

// Input gradients, their reduction, weight gradients: in Megatron's order, which hides the reduction behind
// the last.
void LayerWriter::columns_backward(BlockId to, const std::vector<const Tensor*>& weights,
                                   const char* module) const {
  const Count m = view_.tokens;
  const bool parallel = view_.layout.tp > 1, sp = view_.layout.sp, hidden = rules_.async_backward;
  const auto settle = [&] {
    if (parallel && hidden) schedule_.add(to, wait_for(token::tensor, Phase::backward));
  };
  if (sp && rules_.regather) {
    exchange(to, Op::all_gather, view_.activation_bytes(), Phase::backward, module,
             "the gathered input was not kept and is needed for the weight gradient", hidden);
  }
  for (const Tensor* w : weights) input_gradient(to, *w, m);
  if (sp && rules_.regather) settle();
  exchange(to, sp ? Op::reduce_scatter : Op::all_reduce, view_.activation_bytes(), Phase::backward, module,
           "column-parallel input gradients are added", hidden);
  for (const Tensor* w : weights) weight_gradient(to, *w, m);
  settle();
}

void LayerWriter::attention_forward(BlockId to, Phase phase) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  memory(to, 2 * plane, phase, "norm_1");
  enter(to, phase, "attention");
  for (const Tensor* w : matrices(view_.dense_layer, "attention.")) {
    if (!projection(*w)) linear(to, *w, view_.tokens, phase);
  }
  core(to, phase);
  for (const Tensor* w : matrices(view_.dense_layer, "attention.projection"))
    linear(to, *w, view_.tokens, phase);
  if (!(rules_.one_reduction && view_.model.parallel_block)) leave(to, phase, "attention");
  memory(to, 3 * plane, phase, "residual_1");
}

void LayerWriter::attention_backward(BlockId to) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  memory(to, 3 * plane, Phase::backward, "residual_1");
  if (!(rules_.one_reduction && view_.model.parallel_block)) leave_backward(to, "attention");
  for (const Tensor* w : matrices(view_.dense_layer, "attention.projection")) {
    input_gradient(to, *w, view_.tokens);
    weight_gradient(to, *w, view_.tokens);
  }
  core(to, Phase::backward);
  std::vector<const Tensor*> columns;
  for (const Tensor* w : matrices(view_.dense_layer, "attention.")) {
    if (!projection(*w)) columns.push_back(w);
  }
  columns_backward(to, columns, "attention");
  memory(to, 4 * plane, Phase::backward, "norm_1");
}

void LayerWriter::mlp_forward(BlockId to, bool moe, Phase phase) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  if (view_.model.norms_per_layer > 1) memory(to, 2 * plane, phase, "norm_2");
  if (moe) {
    experts_forward(to, phase);
  } else {
    enter(to, phase, "mlp");
    for (const Tensor* w : matrices(view_.dense_layer, "mlp.")) {
      if (w->shard == Shard::row)
        memory(to, product({view_.tokens, view_.local.ffn, view_.e, view_.model.gated ? 3 : 2}), phase,
               "mlp.activation");
      linear(to, *w, view_.tokens, phase);
    }
    leave(to, phase, "mlp");
  }
  memory(to, 3 * plane, phase, "residual_2");
}

void LayerWriter::mlp_backward(BlockId to, bool moe) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  memory(to, 3 * plane, Phase::backward, "residual_2");
  if (moe) {
    experts_backward(to);
  } else {
    leave_backward(to, "mlp");
    std::vector<const Tensor*> columns;
    for (const Tensor* w : matrices(view_.dense_layer, "mlp.")) {
      if (w->shard != Shard::row) {
        columns.push_back(w);
        continue;
      }
      input_gradient(to, *w, view_.tokens);
      weight_gradient(to, *w, view_.tokens);
    }
    memory(to, product({view_.tokens, view_.local.ffn, view_.e, view_.model.gated ? 5 : 3}), Phase::backward,
           "mlp.activation");
    columns_backward(to, columns, "mlp");
  }
  if (view_.model.norms_per_layer > 1) memory(to, 4 * plane, Phase::backward, "norm_2");
}

void LayerWriter::forward(BlockId to, bool moe, Phase phase) const {
  attention_forward(to, phase);
  mlp_forward(to, moe, phase);
}

void LayerWriter::backward(BlockId to, bool moe) const {
  if (view_.layout.recompute == Recompute::full) forward(to, moe, Phase::recompute);
  mlp_backward(to, moe);
  if (view_.layout.recompute == Recompute::selective) core(to, Phase::recompute);
  attention_backward(to);
}

void LayerWriter::embedding_forward(BlockId to) const {
  memory(to, 2 * view_.activation_bytes(), Phase::forward, "embedding");
  if (!rules_.whole_model) return;
  exchange(to, view_.layout.sp ? Op::reduce_scatter : Op::all_reduce, view_.activation_bytes(),
           Phase::forward, "embedding", "each tensor rank looked up its part of the vocabulary", false);
}

void LayerWriter::embedding_backward(BlockId to) const {
  // The reduction is an identity backwards; under sequence parallelism the gradient shards are gathered.
  if (rules_.whole_model && view_.layout.sp) {
    exchange(to, Op::all_gather, view_.activation_bytes(), Phase::backward, "embedding",
             "gradient shards are gathered for the vocabulary shard", false);
  }
  memory(to, 2 * view_.activation_bytes(), Phase::backward, "embedding");
}

void LayerWriter::head_forward(BlockId to) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  if (view_.model.final_norm) memory(to, 2 * plane, Phase::forward, "final_norm");
  if (rules_.whole_model) enter(to, Phase::forward, "head");
  for (const Tensor* w : matrices(view_.head, "head")) linear(to, *w, view_.tokens, Phase::forward);
  const Count scalars = product({view_.tokens, 4}, "loss");
  memory(to, product({view_.tokens, view_.local.vocab, 8}, "logits"), Phase::forward, "loss");
  if (!rules_.whole_model) return;
  for (const std::string_view why :
       {std::string_view("largest logit over the vocabulary shards"), std::string_view("logit of the label"),
        std::string_view("sum of exponentials over the vocabulary shards")}) {
    Entry entry =
        comm(Op::all_reduce, "tp", view_.layout.tp, scalars, DType::f32, Phase::forward, "loss", why);
    if (why[0] == 'l' && why[1] == 'a') entry.reduce = ReduceOp::max;
    add_comm(schedule_, to, std::move(entry));
  }
}

void LayerWriter::head_backward(BlockId to) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  memory(to, product({view_.tokens, view_.local.vocab, 6}, "logits"), Phase::backward, "loss");
  if (rules_.whole_model) {
    columns_backward(to, matrices(view_.head, "head"), "head");
  } else {
    for (const Tensor* w : matrices(view_.head, "head")) {
      input_gradient(to, *w, view_.tokens);
      weight_gradient(to, *w, view_.tokens);
    }
  }
  if (view_.model.final_norm) memory(to, 4 * plane, Phase::backward, "final_norm");
}

}  // namespace medley::plan

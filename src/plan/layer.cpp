// The dense parts of a layer: projections with their tensor-parallel collectives, norms and MLP, and what a
// backward pass recomputes.
#include "plan/layer.hpp"

#include <algorithm>

namespace medley::plan {

LayerWriter::LayerWriter(const View& view, Schedule& schedule, TensorRules rules)
    : view_(view), schedule_(schedule), rules_(rules) {}

void LayerWriter::stream(BlockId to, StreamOp op, Count bytes, Phase phase, const char* module) const {
  Entry entry = memory_bound(bytes, phase, module);
  entry.dtype = view_.layout.dtype;
  entry.stream = op;
  if (bytes > 0) schedule_.add(to, std::move(entry));
}

void LayerWriter::chain(BlockId to, Count bytes, Passes passes, Phase phase, const char* module) const {
  const bool fused = view_.layout.flags.fused_kernels;
  Entry entry = memory_bound(static_cast<Count>(static_cast<double>(bytes) * (fused ? passes.fused : passes.eager)),
                             phase, module);
  entry.dtype = view_.layout.dtype;
  entry.kernels = fused ? passes.fused_kernels : passes.kernels;
  if (entry.bytes > 0) schedule_.add(to, std::move(entry));
}

// A norm reads its row and writes it; in backward it also reads the gradient.
void LayerWriter::norm(BlockId to, Phase phase, const char* module) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  if (phase == Phase::backward) stream(to, StreamOp::layer_norm_backward, 3 * plane, phase, module);
  else stream(to, StreamOp::layer_norm, 2 * plane, phase, module);
}

// Two inputs and one output; dropout writes a one-byte mask and is a separate kernel unless fused.
void LayerWriter::residual(BlockId to, Phase phase, const char* module) const {
  const Count plane = product({view_.sharded_tokens, view_.model.hidden, view_.e}, "activation");
  if (view_.layout.flags.dropout.value_or(false)) chain(to, plane, {5.5, 3.5, 2}, phase, module);
  else chain(to, plane, {3, 3, 1}, phase, module);
}

// The plain form reads and writes once, and in backward also reads the gradient. The gated form has one more
// input; its product is a separate kernel, two in backward, unless fused.
void LayerWriter::activation(BlockId to, Count tokens, Count width, Phase phase, const char* module) const {
  const Count bytes = product({tokens, width, view_.e}, "activation");
  const bool backward = phase == Phase::backward;
  const bool apart = !view_.layout.flags.activation_fusion;
  const auto run = [&](Passes passes) {
    if (apart) passes.fused = passes.eager, passes.fused_kernels = passes.kernels;
    chain(to, bytes, passes, phase, module);
  };
  if (view_.model.gated) run(backward ? Passes{9, 5, 3} : Passes{5, 3, 2});
  else if (view_.model.squared_relu)  // a ReLU and a power; PyTorch's gradient of a power takes three kernels
    run(backward ? Passes{10, 3, 4} : Passes{4, 2, 2});
  else run(backward ? Passes{3, 3, 1} : Passes{2, 2, 1});
}

// Each bias gradient is the sum of its layer's output gradients over the tokens, which are read once more.
void LayerWriter::bias_gradients(BlockId to, const std::vector<Tensor>& tensors, std::string_view prefix,
                                 Count tokens) const {
  Count width = 0;
  int kernels = 0;
  for (const Tensor& t : tensors) {
    if (t.part == Part::norm || !t.name.starts_with(prefix) || !t.name.ends_with(".bias")) continue;
    width += t.rows;
    ++kernels;
  }
  if (kernels > 0)
    chain(to, product({tokens, width, view_.e}, "bias gradients"), {1, 1, kernels}, Phase::backward, "bias");
}

void LayerWriter::exchange(BlockId to, Op op, Count bytes, Phase phase, const char* module, std::string_view why,
                           bool hidden, double tail) const {
  const bool reduces = op == Op::all_reduce || op == Op::reduce_scatter;
  const DType dtype = reduces ? rules_.reduce_dtype : view_.layout.dtype;
  if (reduces) bytes = product({bytes / view_.e, static_cast<Count>(size_of(dtype))}, "activation");
  Entry entry = comm(op, "tp", view_.layout.tp, bytes, dtype, phase, module, why);
  entry.tail = tail;
  add_comm(schedule_, to, hidden ? async(std::move(entry), token::tensor) : std::move(entry));
}

std::vector<const Tensor*> LayerWriter::matrices(const std::vector<Tensor>& tensors, std::string_view prefix) const {
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
  entry.gemm.grouped = weight.part == Part::expert && shape.batch > 1;
  return entry;
}

/// fp8 recipes keep the head, the router and the embedding in 16 bits.
bool fp8(const View& view, const Tensor& t) {
  return view.layout.flags.fp8 &&
         (t.part == Part::attention || t.part == Part::expert || (t.part == Part::mlp && t.shard != Shard::none));
}

bool projection(const Tensor& t) { return t.name == "attention.projection.weight"; }

}  // namespace

// An fp8 product reads its 16-bit operand once to scale and cast it, and writes it and its transpose: 4 bytes
// per element, 6 when the scale is the tensor's own and must be found first. Experts are cast one by one,
// each with a kernel that arranges its scales. The fused grouped MLP casts what its kernels hold.
void LayerWriter::cast(BlockId to, const Tensor& w, Count elements, Phase phase) const {
  const Flags& flags = view_.layout.flags;
  if (!fp8(view_, w) || (w.part == Part::expert && flags.fused_grouped_mlp)) return;
  const Count bytes = flags.fp8_recipe == Fp8Recipe::current ? 6 : 4;
  Entry entry = memory_bound(product({elements, bytes}, "fp8 operand"), phase, "fp8_cast");
  entry.dtype = view_.layout.dtype;
  if (w.part == Part::expert) entry.kernels = static_cast<int>(2 * w.copies);
  if (entry.bytes > 0) schedule_.add(to, std::move(entry));
}

void LayerWriter::linear(BlockId to, const Tensor& w, Count m, Phase phase, Count parts) const {
  cast(to, w, product({m, w.columns, w.copies}), phase);
  schedule_.add(to, gemm(w, view_.layout.dtype, phase, {m, w.rows, w.columns, w.copies, "TN", fp8(view_, w), parts}));
}
void LayerWriter::input_gradient(BlockId to, const Tensor& w, Count m, Count parts) const {
  cast(to, w, product({m, w.rows, w.copies}), Phase::backward);
  schedule_.add(
      to, gemm(w, view_.layout.dtype, Phase::backward, {m, w.columns, w.rows, w.copies, "NN", fp8(view_, w), parts}));
}
void LayerWriter::weight_gradient(BlockId to, const Tensor& w, Count m) const {
  Gemm shape{w.rows, w.columns, m, w.copies, "NT", fp8(view_, w)};
  // f32 is read and written, where the plain product writes 16 bits
  if (rules_.main_gradients == DType::f32) shape.accumulated = 6;
  schedule_.add(to, gemm(w, view_.layout.dtype, Phase::backward, shape));
}

// tp_comm_overlap as NeMo configures Transformer Engine for H100: the products behind an all_gather (inputs
// of column-parallel layers, gradients of row-parallel ones) exchange shards in a ring and run shard by
// shard, two shards at a time on 8 ranks; those before a reduce_scatter run in 4 parts, and the last part is
// reduced when all products have ended.
Count LayerWriter::ring_parts() const {
  return view_.layout.sp && rules_.overlap_forward ? std::min<Count>(view_.layout.tp, 4) : 1;
}
namespace {
constexpr Count reduce_parts = 4;
}

void LayerWriter::enter(BlockId to, Phase phase, const char* module) const {
  if (!view_.layout.sp) return;
  exchange(to, Op::all_gather, view_.activation_bytes(), phase, module,
           "sequence shards become the input of a column-parallel GEMM", rules_.overlap_forward);
}

void LayerWriter::leave(BlockId to, Phase phase, const char* module) const {
  if (view_.layout.sp) {
    exchange(to, Op::reduce_scatter, view_.activation_bytes(), phase, module,
             "row-parallel partial sums become sequence shards", rules_.overlap_forward, 1.0 / reduce_parts);
  } else {
    exchange(to, Op::all_reduce, view_.activation_bytes(), phase, module,
             rules_.one_reduction && view_.model.parallel_block
                 ? "attention and MLP outputs of a parallel block are added, then reduced once"
                 : "row-parallel partial sums are added",
             false);
  }
}

// With tp_comm_overlap the product and its reduce_scatter are pipelined in chunks: the collective starts with
// the product, not after it.
void LayerWriter::row_forward(BlockId to, const std::vector<const Tensor*>& weights, Phase phase,
                              const char* module) const {
  const bool together = view_.layout.sp && rules_.overlap_forward;
  if (together) leave(to, phase, module);
  for (const Tensor* w : weights) linear(to, *w, view_.tokens, phase, together ? reduce_parts : 1);
  if (together) schedule_.add(to, wait_for(token::tensor, phase));
  else leave(to, phase, module);
}

void LayerWriter::leave_backward(BlockId to, const char* module) const {
  if (!view_.layout.sp) return;
  exchange(to, Op::all_gather, view_.activation_bytes(), Phase::backward, module,
           "gradient shards become the input of a row-parallel GEMM", rules_.overlap_forward);
}

// Both products use the gathered gradient; with tp_comm_overlap the first runs while it arrives.
void LayerWriter::row_backward(BlockId to, const std::vector<const Tensor*>& weights, const char* module) const {
  leave_backward(to, module);
  for (const Tensor* w : weights) input_gradient(to, *w, view_.tokens, ring_parts());
  if (view_.layout.sp && rules_.overlap_forward) schedule_.add(to, wait_for(token::tensor, Phase::backward));
  for (const Tensor* w : weights) weight_gradient(to, *w, view_.tokens);
}

// Input gradients, their reduction, weight gradients: Megatron's order, which hides the reduction behind the
// last.
void LayerWriter::columns_backward(BlockId to, const std::vector<const Tensor*>& weights, const char* module) const {
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

void LayerWriter::attention_forward(BlockId to, Phase phase, LayerKind kind) const {
  const std::vector<Tensor>& tensors = view_.layer(kind);
  norm(to, phase, "norm_1");
  enter(to, phase, "attention");
  const bool decodes_latent = view_.model.latent_attention() && view_.layout.mode == Mode::decode;
  for (const Tensor* w : matrices(tensors, "attention.")) {
    if (projection(*w) || (decodes_latent && w->name == "attention.kv_b.weight")) continue;
    linear(to, *w, view_.tokens, phase, ring_parts());
  }
  if (view_.layout.sp && rules_.overlap_forward) schedule_.add(to, wait_for(token::tensor, phase));
  if (decodes_latent) absorbed(to, phase);
  else core(to, phase, kind.span);
  const auto rows = matrices(tensors, "attention.projection");
  if (rules_.one_reduction && view_.model.parallel_block)
    for (const Tensor* w : rows) linear(to, *w, view_.tokens, phase);
  else row_forward(to, rows, phase, "attention");
  residual(to, phase, "residual_1");
}

void LayerWriter::attention_backward(BlockId to, LayerKind kind) const {
  const std::vector<Tensor>& tensors = view_.layer(kind);
  residual(to, Phase::backward, "residual_1");
  const auto rows = matrices(tensors, "attention.projection");
  if (rules_.one_reduction && view_.model.parallel_block) {
    for (const Tensor* w : rows) {
      input_gradient(to, *w, view_.tokens);
      weight_gradient(to, *w, view_.tokens);
    }
  } else {
    row_backward(to, rows, "attention");
  }
  core(to, Phase::backward, kind.span);
  std::vector<const Tensor*> columns;
  for (const Tensor* w : matrices(tensors, "attention.")) {
    if (!projection(*w)) columns.push_back(w);
  }
  // The gradients of queries, keys and values are concatenated again.
  if (!view_.model.latent_attention())
    chain(to, product({view_.tokens, (view_.local.heads + 2 * view_.local.kv_heads) * view_.model.head_dim, view_.e}),
          {2, 0, 1}, Phase::backward, "attention.split");
  columns_backward(to, columns, "attention");
  bias_gradients(to, tensors, "attention.", view_.tokens);
  norm(to, Phase::backward, "norm_1");
}

void LayerWriter::mlp_forward(BlockId to, bool moe, Phase phase) const {
  for (Count i = 1; i < view_.model.norms_per_layer; ++i) norm(to, phase, "norm_2");
  if (moe) {
    experts_forward(to, phase);
  } else {
    enter(to, phase, "mlp");
    std::vector<const Tensor*> rows;
    for (const Tensor* w : matrices(view_.dense_layer, "mlp.")) {
      if (w->shard == Shard::row) rows.push_back(w);
      else linear(to, *w, view_.tokens, phase, ring_parts());
    }
    if (view_.layout.sp && rules_.overlap_forward) schedule_.add(to, wait_for(token::tensor, phase));
    activation(to, view_.tokens, view_.local.ffn, phase, "mlp.activation");
    row_forward(to, rows, phase, "mlp");
  }
  residual(to, phase, "residual_2");
}

void LayerWriter::mlp_backward(BlockId to, bool moe) const {
  residual(to, Phase::backward, "residual_2");
  if (moe) {
    experts_backward(to);
  } else {
    std::vector<const Tensor*> rows, columns;
    for (const Tensor* w : matrices(view_.dense_layer, "mlp.")) (w->shard == Shard::row ? rows : columns).push_back(w);
    row_backward(to, rows, "mlp");
    activation(to, view_.tokens, view_.local.ffn, Phase::backward, "mlp.activation");
    columns_backward(to, columns, "mlp");
    bias_gradients(to, view_.dense_layer, "mlp.", view_.tokens);
  }
  for (Count i = 1; i < view_.model.norms_per_layer; ++i) norm(to, Phase::backward, "norm_2");
}

void LayerWriter::forward(BlockId to, LayerKind kind, Phase phase) const {
  if (exchanges_early(kind.moe)) exchange_early(to, phase);
  attention_forward(to, phase, kind);
  mlp_forward(to, kind.moe, phase);
  if (exchanges_early(kind.moe)) schedule_.add(to, wait_for(token::experts, phase));
}

// Norms and latent attention's up-projections; the experts' activation runs again beside its gradient.
void LayerWriter::recompute_modules(BlockId to, LayerKind kind) const {
  const RecomputeModules& modules = view_.layout.flags.recompute_modules;
  for (Count i = 0; modules.norms && i < view_.model.norms_per_layer; ++i)
    norm(to, Phase::recompute, i == 0 ? "norm_1" : "norm_2");
  if (!modules.latent_projections || !view_.model.latent_attention()) return;
  for (const Tensor* w : matrices(view_.layer(kind), "attention."))
    if (w->name == "attention.q_b.weight" || w->name == "attention.kv_b.weight")
      linear(to, *w, view_.tokens, Phase::recompute);
}

void LayerWriter::recompute_per_op(BlockId to, LayerKind kind) const {
  const BlockId whole = schedule_.add_block();
  forward(whole, kind, Phase::recompute);
  Count products = 0;
  const Schedule::Block nodes = schedule_.block(whole);
  for (const Schedule::Node& node : nodes) {
    if (node.is_block) continue;  // attention of a context ring
    const Entry& entry = schedule_.entries()[node.index];
    const bool again = entry.kind == Kind::memory || (entry.kind == Kind::gemm && products++ % 2 == 1) ||
                       (entry.kind == Kind::comm && entry.op == Op::all_gather && entry.token == 0);
    if (again) schedule_.add_again(to, node.index, node);
  }
}

void LayerWriter::backward(BlockId to, LayerKind kind) const {
  if (view_.layout.recompute == Recompute::full) forward(to, kind, Phase::recompute);
  else if (view_.layout.recompute == Recompute::per_op) recompute_per_op(to, kind);
  else recompute_modules(to, kind);
  if (exchanges_early(kind.moe)) exchange_early(to, Phase::backward);
  mlp_backward(to, kind.moe);
  if (view_.layout.recompute == Recompute::selective) core(to, Phase::recompute, kind.span);
  attention_backward(to, kind);
  if (exchanges_early(kind.moe)) schedule_.add(to, wait_for(token::experts, Phase::backward));
}

}  // namespace medley::plan

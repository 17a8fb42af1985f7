// The attention block as operators: multi-head, grouped-query and latent; fused or not; with or without a
// cache.
#include "shape/operator_list.hpp"

namespace medley::shape {
namespace {

struct Heads {
  Count queries, keys;       // heads on this rank
  Count key_dim, value_dim;  // of one head
  Count seq_q, seq_k;        // tokens of one sequence
};

Heads heads_of(const OperatorList& list) {
  const Layout& layout = list.work.layout;
  const Model& local = list.local;
  const bool decode = list.work.mode == Mode::decode;
  return {.queries = local.heads,
          .keys = local.latent_attention() ? local.heads : local.kv_heads,
          .key_dim = local.query_head_dim(),
          .value_dim = local.value_head_dim(),
          .seq_q = decode ? 1 : plan::ceil_div(layout.seq, layout.cp),
          .seq_k = decode ? plan::ceil_div(layout.seq, layout.cp) : layout.seq};
}

void add_fused(OperatorList& list, const Heads& h) {
  list.attention("attention", {.batch = list.work.layout.micro_batch,
                               .heads = h.queries,
                               .kv_heads = h.keys,
                               .seq_q = h.seq_q,
                               .seq_k = h.seq_k,
                               // one extent in the kernel's model; the mean keeps the flops where they differ
                               .head_dim = (h.key_dim + h.value_dim) / 2,
                               .causal = list.work.mode != Mode::decode});
}

// Score and values as batched products over heads, the softmax between them through memory. Grouped keys are
// repeated for each query head, as the eager attention of PyTorch models does.
void add_unfused(OperatorList& list, const Heads& h) {
  const Count batch = plan::product({list.work.layout.micro_batch, h.queries}, "heads of a micro-batch");
  list.gemm("score", Pass::forward, h.seq_k, h.seq_q, h.key_dim, batch, GemmLayout::TN);
  list.gemm("values", Pass::forward, h.value_dim, h.seq_q, h.seq_k, batch, GemmLayout::NN);
  if (list.training()) {
    list.gemm("values", Pass::dgrad, h.seq_k, h.seq_q, h.value_dim, batch,
              GemmLayout::TN);  // of the probabilities
    list.gemm("values", Pass::wgrad, h.value_dim, h.seq_k, h.seq_q, batch, GemmLayout::NT);  // of the values
    list.gemm("score", Pass::dgrad, h.key_dim, h.seq_q, h.seq_k, batch, GemmLayout::NN);     // of the queries
    list.gemm("score", Pass::wgrad, h.key_dim, h.seq_k, h.seq_q, batch, GemmLayout::NT);     // of the keys
  }
  // The softmax reads bf16 and writes fp32 (6 bytes, 10 backward). Eagerly, scale and mask pass over the
  // scores before it and a cast after it (14 bytes, 10 backward); compiled, all is one kernel that writes
  // bf16.
  const double scores = double(batch) * double(h.seq_q) * double(h.seq_k);
  list.stream("softmax", StreamOp::softmax, scores * (list.work.compiled ? 4 : 6),
              scores * (list.work.compiled ? 8 : 10));
  list.chain("scale, mask and cast", scores, {14, 0, 3}, {10, 0, 2});
  // batched products want heads apart: queries, keys, values and the result are copied
  const double heads = double(list.tokens) * double(h.queries) * activation_bytes;
  const double copied = heads * double(2 * h.key_dim + 2 * h.value_dim);
  list.chain("transpose heads", copied, {2, 2, 4}, {2, 2, 4});
}

void add_core(OperatorList& list, const Heads& h) {
  if (list.work.layout.flags.flash_attention)
    add_fused(list, h);
  else
    add_unfused(list, h);
}

void add_rotary(OperatorList& list, Count width) {
  if (list.model.positions != plan::Positions::rotary) return;
  // eagerly x·cos + rotate(x)·sin is two products, a rotated copy and a sum
  const double bytes = double(list.tokens) * double(width) * activation_bytes;
  list.chain("rotary", bytes, {9, 2, 4}, {9, 2, 4});
}

// DeepSeek's latent attention while decoding: the up-projections of keys and values are absorbed into queries
// and outputs, one small product a head, so that all heads share the one latent key of the cache.
void add_absorbed(OperatorList& list) {
  const auto& latent = list.local.latent;
  Heads heads = heads_of(list);
  list.linear("absorb keys", list.tokens, latent.qk_nope_head_dim, latent.kv_lora_rank, heads.queries);
  heads.keys = 1;
  heads.key_dim = latent.kv_lora_rank + latent.qk_rope_head_dim;
  heads.value_dim = latent.kv_lora_rank;
  add_core(list, heads);
  list.linear("absorb values", list.tokens, latent.kv_lora_rank, latent.v_head_dim, heads.queries);
}

bool is(const plan::Tensor& tensor, std::string_view module) {
  return tensor.name.starts_with(module);
}

}  // namespace

void add_attention(OperatorList& list, const std::vector<plan::Tensor>& layer) {
  list.stream("norm", StreamOp::layer_norm, 2 * list.kept, 3 * list.kept);
  const Model& local = list.local;
  const bool absorbed = local.latent_attention() && list.work.mode == Mode::decode;
  const plan::Tensor* projection = nullptr;
  for (const auto& tensor : layer) {
    if (!tensor.matrix || !is(tensor, "attention.") || (absorbed && is(tensor, "attention.kv_b."))) continue;
    if (is(tensor, "attention.projection."))
      projection = &tensor;
    else
      list.linear(tensor, list.tokens);
  }
  // the gradients of queries, keys and values are put side by side again
  const Count split = local.latent_attention() ? 0 : (local.heads + 2 * local.kv_heads) * local.head_dim;
  list.chain("split heads", double(list.tokens) * double(split) * activation_bytes, {0, 0, 1}, {2, 0, 1});
  const Count turned = local.latent_attention() ? (local.heads + 1) * local.latent.qk_rope_head_dim
                                                : (local.heads + local.kv_heads) * local.head_dim;
  add_rotary(list, turned);
  if (absorbed)
    add_absorbed(list);
  else
    add_core(list, heads_of(list));
  if (projection) list.linear(*projection, list.tokens);
  list.stream("residual", StreamOp::elementwise, 3 * list.kept, 3 * list.kept);
}

}  // namespace medley::shape

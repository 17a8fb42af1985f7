// The attention block as operators: multi-head, grouped-query and latent; fused or not; with or without a cache.
#include "shape/operator_list.hpp"

namespace medley::shape {
namespace {

struct Heads {
  Count queries, keys;       // heads on this rank
  Count key_dim, value_dim;  // of one head
  Count seq_q, seq_k;        // tokens of one sequence
};

// Keys and values of fewer heads than ranks are held by several ranks, as Megatron and vLLM do.
Heads heads_of(const OperatorList& list) {
  const Layout& layout = list.work.layout;
  const Model& model = list.model;
  const bool decode = list.work.mode == Mode::decode;
  return {.queries = plan::ceil_div(model.heads, list.tp),
          .keys = plan::ceil_div(model.kv_heads, list.tp),
          .key_dim = model.query_head_dim(),
          .value_dim = model.value_head_dim(),
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
    list.gemm("values", Pass::dgrad, h.seq_k, h.seq_q, h.value_dim, batch, GemmLayout::TN);  // of the probabilities
    list.gemm("values", Pass::wgrad, h.value_dim, h.seq_k, h.seq_q, batch, GemmLayout::NT);  // of the values
    list.gemm("score", Pass::dgrad, h.key_dim, h.seq_q, h.seq_k, batch, GemmLayout::NN);     // of the queries
    list.gemm("score", Pass::wgrad, h.key_dim, h.seq_k, h.seq_q, batch, GemmLayout::NT);     // of the keys
  }
  const double scores = double(batch) * double(h.seq_q) * double(h.seq_k) * activation_bytes;
  list.stream("softmax", StreamOp::softmax, 2 * scores, 3 * scores);  // scale and mask are fused into it
}

void add_core(OperatorList& list, const Heads& h) {
  if (list.work.layout.flags.flash_attention)
    add_fused(list, h);
  else
    add_unfused(list, h);
}

void add_rotary(OperatorList& list, Count width) {
  if (list.model.positions != plan::Positions::rotary) return;
  const double bytes = 2 * double(list.tokens) * double(width) * activation_bytes;
  list.stream("rotary", StreamOp::elementwise, bytes, bytes);
}

// DeepSeek's latent attention. The down-projections are whole on every rank; heads split by tp. While decoding, the
// up-projections of keys and values are absorbed into queries and outputs, so all heads share one latent key.
void add_latent(OperatorList& list) {
  const auto& latent = list.model.latent;
  const Count h = list.model.hidden, tokens = list.tokens;
  Heads heads = heads_of(list);
  heads.keys = heads.queries;
  const Count query_width = heads.queries * heads.key_dim;
  if (latent.q_lora_rank > 0) {
    list.linear("q down", tokens, h, latent.q_lora_rank);
    list.linear("q up", tokens, latent.q_lora_rank, query_width);
  } else {
    list.linear("q", tokens, h, query_width);
  }
  list.linear("kv down", tokens, h, latent.kv_lora_rank + latent.qk_rope_head_dim);
  if (list.work.mode == Mode::decode) {
    list.linear("absorb keys", tokens, latent.qk_nope_head_dim, latent.kv_lora_rank, 1, heads.queries);
    add_core(list, {.queries = heads.queries,
                    .keys = 1,
                    .key_dim = latent.kv_lora_rank + latent.qk_rope_head_dim,
                    .value_dim = latent.kv_lora_rank,
                    .seq_q = heads.seq_q,
                    .seq_k = heads.seq_k});
    list.linear("absorb values", tokens, latent.kv_lora_rank, heads.value_dim, 1, heads.queries);
  } else {
    list.linear("kv up", tokens, latent.kv_lora_rank, heads.queries * (latent.qk_nope_head_dim + heads.value_dim));
    add_rotary(list, (heads.queries + 1) * latent.qk_rope_head_dim);
    add_core(list, heads);
  }
  list.linear("projection", tokens, heads.queries * heads.value_dim, h);
}

void add_grouped(OperatorList& list) {
  const Heads heads = heads_of(list);
  list.linear("qkv", list.tokens, list.model.hidden, (heads.queries + 2 * heads.keys) * list.model.head_dim);
  add_rotary(list, (heads.queries + heads.keys) * list.model.head_dim);
  add_core(list, heads);
  list.linear("projection", list.tokens, heads.queries * list.model.head_dim, list.model.hidden);
}

}  // namespace

void add_attention(OperatorList& list) {
  if (list.model.norms_per_layer > 0) list.stream("norm", StreamOp::layer_norm, 2 * list.kept, 3 * list.kept);
  if (list.model.latent_attention())
    add_latent(list);
  else
    add_grouped(list);
  list.stream("residual", StreamOp::elementwise, 3 * list.kept, 3 * list.kept);
}

}  // namespace medley::shape

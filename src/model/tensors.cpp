#include "model/tensors.hpp"

namespace medley::model {
namespace {

/// Collects tensors of one module; a bias follows its matrix.
class Builder {
 public:
  void linear(const std::string& name, Part part, Count out, Count in, Shard shard, bool bias, Count copies = 1) {
    tensors.push_back({name + ".weight", part, out, in, shard, true, copies, false});
    // A row-parallel layer adds its bias after the reduction, so every tensor rank holds the whole bias.
    if (bias) {
      tensors.push_back(
          {name + ".bias", part, out, 1, shard == Shard::column ? Shard::column : Shard::none, false, copies, false});
    }
  }
  void vector(const std::string& name, Part part, Count size) {
    tensors.push_back({name, part, size, 1, Shard::none, false, 1, false});
  }
  void norm(const Model& m, const std::string& name, Count size) {
    if (m.norm == Norm::plain) return;
    vector(name + ".weight", Part::norm, size);
    if (m.norm == Norm::layer) vector(name + ".bias", Part::norm, size);
  }
  std::vector<Tensor> tensors;
};

void latent_attention(Builder& b, const Model& m) {
  const LatentAttention& l = m.latent;
  const Count query = l.qk_nope_head_dim + l.qk_rope_head_dim;
  if (l.q_lora_rank > 0) {
    b.linear("attention.q_a", Part::attention, l.q_lora_rank, m.hidden, Shard::none, m.qkv_bias);
    b.norm(m, "attention.q_a_norm", l.q_lora_rank);
    b.linear("attention.q_b", Part::attention, product({m.heads, query}), l.q_lora_rank, Shard::column, false);
  } else {
    b.linear("attention.q", Part::attention, product({m.heads, query}), m.hidden, Shard::column, false);
  }
  b.linear("attention.kv_a", Part::attention, l.kv_lora_rank + l.qk_rope_head_dim, m.hidden, Shard::none, m.qkv_bias);
  b.norm(m, "attention.kv_a_norm", l.kv_lora_rank);
  b.linear("attention.kv_b", Part::attention, product({m.heads, l.qk_nope_head_dim + l.v_head_dim}), l.kv_lora_rank,
           Shard::column, false);
  b.linear("attention.projection", Part::attention, m.hidden, product({m.heads, l.v_head_dim}), Shard::row,
           m.projection_bias);
}

void attention(Builder& b, const Model& m) {
  if (m.latent_attention()) return latent_attention(b, m);
  const Count query = m.query_width(), kv = m.kv_width();
  if (m.fused_qkv) {
    b.linear("attention.qkv", Part::attention, query + 2 * kv, m.hidden, Shard::column, m.qkv_bias);
  } else {
    b.linear("attention.q", Part::attention, query, m.hidden, Shard::column, m.qkv_bias);
    b.linear("attention.k", Part::attention, kv, m.hidden, Shard::column, m.qkv_bias);
    b.linear("attention.v", Part::attention, kv, m.hidden, Shard::column, m.qkv_bias);
  }
  if (m.qk_norm == QkNorm::head) {
    b.norm(m, "attention.q_norm", m.head_dim);
    b.norm(m, "attention.k_norm", m.head_dim);
  } else if (m.qk_norm == QkNorm::width) {  // never has a bias, not even in StableLM's layer norms
    b.vector("attention.q_norm.weight", Part::norm, query);
    b.vector("attention.k_norm.weight", Part::norm, kv);
  }
  if (m.sinks) b.vector("attention.sinks", Part::attention, m.heads);
  b.linear("attention.projection", Part::attention, m.hidden, query, Shard::row, m.projection_bias);
}

// Lightning attention (MiniMax): queries, keys and values of every head, a gate on the output and its norm.
void linear_attention(Builder& b, const Model& m) {
  const Count width = m.query_width();
  b.linear("attention.qkv", Part::attention, product({3, width}), m.hidden, Shard::column, m.qkv_bias);
  b.norm(m, "attention.output_norm", width);
  b.linear("attention.gate", Part::attention, width, m.hidden, Shard::column, false);
  b.linear("attention.projection", Part::attention, m.hidden, width, Shard::row, m.projection_bias);
}

void mlp(Builder& b, const Model& m, const std::string& name, Part part, Count width, Count copies) {
  if (m.gated && m.fused_gate) {
    b.linear(name + ".gate_up", part, 2 * width, m.hidden, Shard::column, m.mlp_bias, copies);
  } else {
    if (m.gated) b.linear(name + ".gate", part, width, m.hidden, Shard::column, m.mlp_bias, copies);
    b.linear(name + ".up", part, width, m.hidden, Shard::column, m.mlp_bias, copies);
  }
  b.linear(name + ".down", part, m.hidden, width, Shard::row, m.mlp_bias, copies);
}

}  // namespace

std::vector<Tensor> layer_tensors(const Model& m, LayerKind kind) {
  Builder b;
  if (m.norms_per_layer > 0) b.norm(m, "norm_1", m.hidden);
  if (kind.span == Span::linear) linear_attention(b, m);
  else attention(b, m);
  for (Count i = 2; i <= m.norms_per_layer; ++i) b.norm(m, "norm_" + std::to_string(i), m.hidden);
  if (!kind.moe) {
    mlp(b, m, "mlp", Part::mlp, m.ffn, 1);
    return b.tensors;
  }
  b.linear("mlp.router", Part::mlp, m.experts, m.hidden, Shard::none, m.router_bias);
  mlp(b, m, "mlp.experts", Part::expert, m.moe_ffn, m.experts);
  if (m.shared_ffn > 0) mlp(b, m, "mlp.shared", Part::mlp, m.shared_ffn, 1);
  if (m.shared_gate) b.linear("mlp.shared_gate", Part::mlp, 1, m.hidden, Shard::none, false);
  return b.tensors;
}

std::vector<Tensor> embedding_tensors(const Model& m) {
  Builder b;
  const Count width = m.embedding_width > 0 ? m.embedding_width : m.hidden;
  b.linear("embedding", Part::embedding, m.vocab, width, Shard::column, false);
  if (m.positions == Positions::learned) {
    b.linear("positions", Part::positions, m.position_rows, m.hidden, Shard::none, false);
  }
  if (width != m.hidden) b.linear("embedding.project_in", Part::embedding, m.hidden, width, Shard::none, false);
  if (m.embedding_norm) b.norm(m, "embedding.norm", m.hidden);
  return b.tensors;
}

std::vector<Tensor> head_tensors(const Model& m) {
  Builder b;
  const Count width = m.embedding_width > 0 ? m.embedding_width : m.hidden;
  if (m.final_norm) b.norm(m, "final_norm", m.hidden);
  if (width != m.hidden) b.linear("head.project_out", Part::head, width, m.hidden, Shard::none, false);
  b.linear("head", Part::head, m.vocab, width, Shard::column, m.head_bias);
  for (Tensor& t : b.tensors) t.tied = m.tied_embeddings && t.name == "head.weight";
  return b.tensors;
}

}  // namespace medley::model

#include "model/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>

#include "model/tensors.hpp"

namespace medley::model {
namespace {

void add(Parameters& to, const std::vector<Tensor>& tensors, Count times, const Model& m) {
  for (const Tensor& t : tensors) {
    if (t.tied) continue;
    const Count n = product({t.elements(), times}, "parameters");
    Count* part = nullptr;
    switch (t.part) {
      case Part::embedding: part = &to.embedding; break;
      case Part::positions: part = &to.positions; break;
      case Part::attention: part = &to.attention; break;
      case Part::mlp: part = &to.mlp; break;
      case Part::expert: part = &to.experts; break;
      case Part::norm: part = &to.norms; break;
      case Part::head: part = &to.head; break;
    }
    *part = sum(*part, n, "parameters");
    to.total = sum(to.total, n, "parameters");
    to.active = sum(to.active, t.part == Part::expert ? n / m.experts * m.top_k : n, "parameters");
  }
}

struct Rule {
  const char* key;
  Count value;
  Count low, high;
};

// Bounds far beyond any model keep products such as hidden·ffn·experts·layers within what product() can check
// cheaply, and reject nonsense such as a negative width at once.
void check_ranges(const Model& m, const std::string& source) {
  constexpr Count wide = Count{1} << 24, many = Count{1} << 20, vocabulary = Count{1} << 32;
  for (const Rule& rule : {Rule{"hidden_size", m.hidden, 1, wide},
                           {"num_attention_heads", m.heads, 1, many},
                           {"num_key_value_heads", m.kv_heads, 1, many},
                           {"head_dim", m.head_dim, 1, many},
                           {"num_hidden_layers", m.layers, 1, 16384},
                           {"intermediate_size", m.ffn, 0, wide},
                           {"vocab_size", m.vocab, 1, vocabulary},
                           {"max_position_embeddings", m.seq, 1, vocabulary},
                           {"num_experts", m.experts, 0, many},
                           {"num_experts_per_tok", m.top_k, 0, many},
                           {"moe_intermediate_size", m.moe_ffn, 0, wide},
                           {"shared_expert_intermediate_size", m.shared_ffn, 0, wide},
                           {"first_k_dense_replace", m.first_dense_layers, 0, many},
                           {"decoder_sparse_step", m.moe_every, 1, many},
                           {"word_embed_proj_dim", m.embedding_width, 0, wide},
                           {"position rows", m.position_rows, 0, vocabulary},
                           {"q_lora_rank", m.latent.q_lora_rank, 0, wide},
                           {"kv_lora_rank", m.latent.kv_lora_rank, 0, wide},
                           {"qk_nope_head_dim", m.latent.qk_nope_head_dim, 0, many},
                           {"qk_rope_head_dim", m.latent.qk_rope_head_dim, 0, many},
                           {"v_head_dim", m.latent.v_head_dim, 0, many},
                           {"sliding_window", m.window, 0, vocabulary},
                           {"norms of a layer", m.norms_per_layer, 0, 4}}) {
    if (rule.value >= rule.low && rule.value <= rule.high) continue;
    throw Error(ErrorKind::invalid, fmt::format("{}: {} is {}; it must lie between {} and {}", source, rule.key,
                                                rule.value, rule.low, rule.high));
  }
}

}  // namespace

bool Model::moe_layer(Count index) const {
  if (!moe() || index < first_dense_layers) return false;
  if (std::find(dense_layers.begin(), dense_layers.end(), index) != dense_layers.end()) return false;
  return (index + 1) % moe_every == 0;
}

Count Model::moe_layers() const {
  Count n = 0;
  for (Count i = 0; i < layers && moe(); ++i) n += moe_layer(i);
  return n;
}

Span Model::span(Count index) const {
  if (spans.empty()) return window > 0 ? Span::window : Span::full;
  switch (spans[static_cast<std::size_t>(index) % spans.size()]) {
    case 'W': return window > 0 ? Span::window : Span::full;
    case 'L': return Span::linear;
    default: return Span::full;
  }
}

std::vector<std::pair<LayerKind, Count>> Model::kinds() const {
  std::vector<std::pair<LayerKind, Count>> out;
  for (Count i = 0; i < layers; ++i) {
    const LayerKind here = kind(i);
    const auto known = std::ranges::find(out, here, &std::pair<LayerKind, Count>::first);
    if (known == out.end()) out.emplace_back(here, 1);
    else ++known->second;
  }
  return out;
}

// A linear layer processes blocks of 256 tokens, each against itself and against a state of head_dim keys.
double Model::pairs_share(Span of, Count tokens) const {
  const auto triangle = [](double n) { return n * (n + 1) / 2; };
  const double s = static_cast<double>(tokens), w = static_cast<double>(window), all = triangle(s);
  if (of == Span::linear) return std::min(1.0, s * (128 + static_cast<double>(head_dim)) / all);
  if (of == Span::full || window >= tokens) return 1;
  if (chunked) return (std::floor(s / w) * triangle(w) + triangle(std::fmod(s, w))) / all;
  return (w * s - triangle(w - 1)) / all;
}

// The state of a linear layer, head_dim² f32 values per head, is as large as head_dim keys and values.
Count Model::keys_kept(Span of, Count cached) const {
  if (of == Span::linear) return std::min(cached, head_dim);
  return of == Span::window ? std::min(cached, window) : cached;
}

Count Model::query_head_dim() const {
  return latent_attention() ? latent.qk_nope_head_dim + latent.qk_rope_head_dim : head_dim;
}

Count Model::value_head_dim() const { return latent_attention() ? latent.v_head_dim : head_dim; }

Parameters count_parameters(const Model& m) {
  Parameters p;
  add(p, embedding_tensors(m), 1, m);
  for (const auto& [kind, count] : m.kinds()) add(p, layer_tensors(m, kind), count, m);
  add(p, head_tensors(m), 1, m);
  return p;
}

void check(const Model& m, const std::string& source) {
  check_ranges(m, source);
  const auto refuse = [&](const std::string& sentence) {
    throw Error(ErrorKind::invalid, fmt::format("{}: {}", source, sentence));
  };
  if (m.dense_layers.size() > 1024) refuse("mlp_only_layers names more than 1024 layers");
  if (m.heads % m.kv_heads != 0) {
    refuse(fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", m.heads, m.kv_heads));
  }
  if (m.moe() && m.top_k < 1) refuse(fmt::format("{} experts need num_experts_per_tok", m.experts));
  if (m.top_k > m.experts) refuse(fmt::format("num_experts_per_tok {} exceeds num_experts {}", m.top_k, m.experts));
  if (m.moe() && m.moe_ffn < 1) refuse("experts need moe_intermediate_size");
  if (m.moe_layers() < m.layers && m.ffn < 1) refuse("intermediate_size is missing");
  if (m.latent_attention() && (m.latent.v_head_dim < 1 || m.query_head_dim() < 1)) {
    refuse("kv_lora_rank needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim");
  }
  if (m.latent_attention() && m.spans.find('L') != std::string::npos)
    refuse("layer_types has linear layers beside latent attention, which no known family mixes");
  for (const Count layer : m.dense_layers) {
    if (layer < 0 || layer >= m.layers)
      refuse(fmt::format("mlp_only_layers names layer {}, but there are {}", layer, m.layers));
  }
  count_parameters(m);  // rejects counts above 2^63
}

}  // namespace medley::model

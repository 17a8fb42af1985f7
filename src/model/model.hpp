// A transformer's shape, as the planner, the shape advisor and the cost model use it. Made by model_from_zoo
// (zoo.hpp), read_model (read_model.hpp) or by hand; parameter counts are the framework's own.
#pragma once

#include <compare>
#include <string>
#include <utility>
#include <vector>

#include "model/checked.hpp"

namespace medley::model {

enum class Positions : std::uint8_t { rotary, learned, alibi, none };
/// `plain` has no parameters (OLMo 1).
enum class Norm : std::uint8_t { layer, layer_without_bias, rms, plain };
/// Norms of queries and keys: none, one of head_dim for all heads (Qwen3), or of the whole width (OLMo 2).
enum class QkNorm : std::uint8_t { none, head, width };

/// Which tokens a layer's attention sees: all earlier ones, the last `window` ones, or a state of fixed size.
enum class Span : std::uint8_t { full, window, linear };

/// Layers of one kind have the same tensors and the same work.
struct LayerKind {
  bool moe = false;
  Span span = Span::full;
  constexpr LayerKind(bool routed = false, Span sees = Span::full) : moe(routed), span(sees) {}
  auto operator<=>(const LayerKind&) const = default;
};

/// Multi-head latent attention (DeepSeek-V2/V3); used when kv_lora_rank > 0.
struct LatentAttention {
  Count q_lora_rank = 0;  ///< 0: queries are projected directly
  Count kv_lora_rank = 0;
  Count qk_nope_head_dim = 0;
  Count qk_rope_head_dim = 0;
  Count v_head_dim = 0;
};

struct Model {
  std::string name = "inline";
  std::string family = "gpt";  ///< model_type of its config, or the framework of its file

  Count hidden = 0;
  Count heads = 0;
  Count kv_heads = 0;
  Count head_dim = 0;  ///< never derived if given: Qwen3-4B has hidden ≠ heads·head_dim
  Count layers = 0;
  Count ffn = 0;       ///< width of the dense MLP
  Count vocab = 0;     ///< rows of the embedding, including the file's padding
  Count seq = 0;       ///< longest sequence, and the default sequence of a plan
  bool gated = false;  ///< SwiGLU and the like: two up-projections

  Positions positions = Positions::rotary;
  Count position_rows = 0;  ///< rows of a learned position table (OPT has seq + 2)
  Norm norm = Norm::layer;
  Count norms_per_layer = 2;    ///< GPT-J and Phi have one for both halves, Gemma 2 one before and after each
  bool embedding_norm = false;  ///< BLOOM normalises its embeddings
  bool final_norm = true;
  QkNorm qk_norm = QkNorm::none;
  bool qkv_bias = true;
  bool projection_bias = true;
  bool mlp_bias = true;
  bool head_bias = false;       ///< GPT-J and Phi
  bool router_bias = false;     ///< gpt-oss
  bool squared_relu = false;    ///< Nemotron
  bool clamped_gate = false;    ///< gpt-oss limits gate and up before it multiplies them
  bool sinks = false;           ///< gpt-oss: a learned logit per head that absorbs attention no key should get
  bool parallel_block = false;  ///< attention and MLP read the same input, so one all_reduce could serve both
  bool tied_embeddings = false;
  Count embedding_width = 0;  ///< OPT-350m embeds in 512 and projects to hidden; 0: hidden
  bool fused_qkv = false;     ///< one matrix in the framework's parameter list
  bool fused_gate = false;    ///< gate and up are one matrix

  Count experts = 0;  ///< routed experts per mixture-of-experts layer; 0: dense
  Count top_k = 0;
  Count moe_ffn = 0;
  Count shared_ffn = 0;             ///< total width of the shared experts
  bool shared_gate = false;         ///< Qwen2-MoE scales its shared expert by a learned gate
  Count first_dense_layers = 0;     ///< DeepSeek: the first k layers are dense
  Count moe_every = 1;              ///< every n-th layer is a mixture (decoder_sparse_step)
  std::vector<Count> dense_layers;  ///< layers named dense (mlp_only_layers)

  LatentAttention latent;

  Count window = 0;      ///< tokens that a layer of Span::window sees; 0: all layers see all
  bool chunked = false;  ///< Llama 4: windows are blocks of the sequence, not sliding
  /// Span of each layer, one letter each: F full, W window, L linear; repeats if shorter than the model.
  /// Empty: every layer has the window, if there is one.
  std::string spans;

  bool moe() const noexcept { return experts > 0; }
  bool latent_attention() const noexcept { return latent.kv_lora_rank > 0; }
  /// Whether layer `index` (from 0) routes to experts.
  bool moe_layer(Count index) const;
  Count moe_layers() const;
  Span span(Count index) const;
  LayerKind kind(Count index) const { return {moe_layer(index), span(index)}; }
  /// How many layers there are of each kind, the kind of layer 0 first.
  std::vector<std::pair<LayerKind, Count>> kinds() const;
  /// The share of the query-key pairs below the diagonal of a sequence of `tokens` that a layer computes.
  double pairs_share(Span of, Count tokens) const;
  /// Of `cached` tokens, how many one new token reads and a layer keeps.
  Count keys_kept(Span of, Count cached) const;
  Count query_width() const { return heads * query_head_dim(); }
  Count kv_width() const { return kv_heads * head_dim; }
  /// Width of one query head: head_dim, or nope + rope of latent attention.
  Count query_head_dim() const;
  /// Width of one value head.
  Count value_head_dim() const;
};

/// Parameters by component, summed over layers; exactly as the model's framework counts them.
struct Parameters {
  Count embedding = 0;  ///< token embedding
  Count positions = 0;
  Count attention = 0;
  Count mlp = 0;      ///< dense MLPs, shared experts and routers
  Count experts = 0;  ///< routed experts
  Count norms = 0;
  Count head = 0;  ///< 0 when tied
  Count total = 0;
  Count active = 0;  ///< those one token uses: top_k of the experts
};
Parameters count_parameters(const Model& model);

/// Throws Error(invalid) naming the first field that is missing, negative, too large or inconsistent with
/// another; `source` (a file's name, or "--model") begins the message. Every reader calls it.
void check(const Model& model, const std::string& source);

}  // namespace medley::model

// Hugging Face config.json, family by family: each has its own keys, defaults and traps.
#include <fmt/format.h>

#include <algorithm>

#include "model/families.hpp"
#include "model/read_model.hpp"

namespace medley::model {
namespace {

/// Keys of one config, with errors that name it.
class Config {
 public:
  Config(const nlohmann::json& json, const std::string& source) : json_(json), source_(source) {}

  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  Count number(const char* key) const {
    if (!has(key)) refuse_at(source_, fmt::format("{} is missing", key));
    return whole(key);
  }
  Count number(const char* key, Count fallback) const { return has(key) ? whole(key) : fallback; }
  /// The first of several spellings; two that differ are a contradiction.
  Count either(std::initializer_list<const char*> keys) const {
    const char* first = nullptr;
    for (const char* key : keys) {
      if (!has(key)) continue;
      if (first && whole(first) != whole(key)) {
        refuse_at(source_, fmt::format("{} is {} but {} is {}", first, whole(first), key, whole(key)));
      }
      if (!first) first = key;
    }
    return first ? whole(first) : number(*keys.begin());
  }
  Count either_or(std::initializer_list<const char*> keys, Count fallback) const {
    for (const char* key : keys) {
      if (has(key)) return either(keys);
    }
    return fallback;
  }
  bool flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!json_[key].is_boolean()) refuse_at(source_, fmt::format("{} must be true or false", key));
    return json_[key].get<bool>();
  }
  std::string text(const char* key) const {
    if (!has(key)) return {};
    if (!json_[key].is_string()) refuse_at(source_, fmt::format("{} must be text", key));
    return json_[key].get<std::string>();
  }
  std::vector<Count> numbers(const char* key) const {
    std::vector<Count> out;
    if (!has(key)) return out;
    if (!json_[key].is_array()) refuse_at(source_, fmt::format("{} must be a list", key));
    for (const auto& item : json_[key]) {
      if (!item.is_number_integer()) refuse_at(source_, fmt::format("{} must hold whole numbers", key));
      out.push_back(item.get<Count>());
    }
    return out;
  }
  const std::string& source() const { return source_; }

 private:
  Count whole(const char* key) const {
    const auto& value = json_[key];
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
      refuse_at(source_, fmt::format("{} passes 2^63", key));
    if (!value.is_number_integer()) refuse_at(source_, fmt::format("{} must be a whole number", key));
    return value.get<Count>();
  }
  const nlohmann::json& json_;
  std::string source_;
};

void common(Model& m, const Config& c) {
  m.hidden = c.number("hidden_size");
  m.heads = c.number("num_attention_heads");
  m.layers = c.number("num_hidden_layers");
  m.vocab = c.number("vocab_size");
  m.seq = c.number("max_position_embeddings");
}

void derived_head(Model& m, const Config& c) {
  m.kv_heads = c.number("num_key_value_heads", m.heads);
  if (c.has("head_dim")) {
    m.head_dim = c.number("head_dim");
    return;
  }
  if (m.heads < 1 || m.hidden % m.heads != 0) {
    refuse_at(c.source(),
              fmt::format("hidden_size {} is not divisible by num_attention_heads {} and head_dim is missing",
                          m.hidden, m.heads));
  }
  m.head_dim = m.hidden / m.heads;
}

void gpt2(Model& m, const Config& c) {  // and GPT-J: n_inner null means 4h
  m.hidden = c.either({"n_embd", "hidden_size"});
  m.heads = c.either({"n_head", "num_attention_heads"});
  m.layers = c.either({"n_layer", "num_hidden_layers"});
  m.vocab = c.number("vocab_size");
  m.seq = c.either({"n_positions", "max_position_embeddings"});
  m.ffn = c.number("n_inner", product({4, m.hidden}));
  m.position_rows = m.positions == Positions::learned ? m.seq : 0;
}

void opt(Model& m, const Config& c) {
  common(m, c);
  m.ffn = c.number("ffn_dim");
  m.position_rows = sum(m.seq, 2);  // the table starts at index 2
  m.embedding_width = c.number("word_embed_proj_dim", m.hidden);
  if (m.embedding_width == m.hidden) m.embedding_width = 0;
  m.final_norm = c.flag("do_layer_norm_before", true) && !c.flag("_remove_final_layer_norm", false);
  if (!c.flag("enable_bias", true)) m.qkv_bias = m.projection_bias = m.mlp_bias = false;
}

void bloom(Model& m, const Config& c) {
  m.hidden = c.either({"hidden_size", "n_embed"});
  m.layers = c.either({"n_layer", "num_hidden_layers"});
  m.heads = c.either({"n_head", "num_attention_heads"});
  m.vocab = c.number("vocab_size");
  m.seq = c.number("seq_length", 2048);  // alibi has no table; BLOOM trained on 2048
  m.ffn = product({4, m.hidden});
}

void falcon(Model& m, const Config& c) {
  m.hidden = c.either({"hidden_size", "n_embed"});
  m.heads = c.either({"num_attention_heads", "n_head"});
  m.layers = c.either({"num_hidden_layers", "n_layer"});
  m.vocab = c.number("vocab_size");
  m.seq = c.number("max_position_embeddings", 2048);
  m.ffn = c.number("ffn_hidden_size", product({4, m.hidden}));
  const bool grouped = c.flag("new_decoder_architecture", false), single = c.flag("multi_query", true);
  // Only the grouped architecture reads num_kv_heads; multi_query means one, otherwise every head has its
  // own.
  m.kv_heads = grouped ? c.either_or({"num_kv_heads", "n_head_kv"}, m.heads) : single ? 1 : m.heads;
  m.parallel_block = grouped || c.flag("parallel_attn", true);
  m.norms_per_layer = grouped
                          ? static_cast<int>(std::clamp<Count>(c.number("num_ln_in_parallel_attn", 2), 1, 2))
                      : m.parallel_block ? 1
                                         : 2;
  if (c.flag("bias", false)) m.qkv_bias = m.projection_bias = m.mlp_bias = true;
  if (c.flag("alibi", false)) m.positions = Positions::alibi;
}

void gpt_neox(Model& m, const Config& c) {
  common(m, c);
  m.ffn = c.number("intermediate_size");
  m.parallel_block = c.flag("use_parallel_residual", true);
  if (!c.flag("attention_bias", true)) m.qkv_bias = m.projection_bias = false;
}

void phi(Model& m, const Config& c) {
  common(m, c);
  m.ffn = c.number("intermediate_size", product({4, m.hidden}));
}

void llama(Model& m, const Config& c) {  // Mistral, Qwen2, Qwen3, Phi-3 too
  common(m, c);
  m.ffn = c.number("intermediate_size");
  m.qkv_bias = c.flag("attention_bias", m.qkv_bias);
  if (m.family == "llama" && c.flag("attention_bias", false)) m.projection_bias = true;
  m.mlp_bias = c.flag("mlp_bias", false);
}

void mixtral(Model& m, const Config& c) {
  llama(m, c);
  m.experts = c.number("num_local_experts");
  m.top_k = c.number("num_experts_per_tok");
  m.moe_ffn = m.ffn;
}

void qwen_moe(Model& m, const Config& c) {
  llama(m, c);
  m.experts = c.number("num_experts");
  m.top_k = c.number("num_experts_per_tok");
  m.moe_ffn = c.number("moe_intermediate_size");
  m.moe_every = c.number("decoder_sparse_step", 1);
  m.dense_layers = c.numbers("mlp_only_layers");
  if (m.family == "qwen2_moe") {
    m.shared_ffn = c.number("shared_expert_intermediate_size");
    m.shared_gate = true;
  }
}

void deepseek(Model& m, const Config& c) {
  llama(m, c);
  m.experts = c.number("n_routed_experts", 0);
  if (m.experts > 0) {
    m.top_k = c.number("num_experts_per_tok");
    m.moe_ffn = c.number("moe_intermediate_size");
    m.shared_ffn = product({c.number("n_shared_experts", 0), m.moe_ffn}, "n_shared_experts");
    m.first_dense_layers = c.number("first_k_dense_replace", 0);
    m.moe_every = c.number("moe_layer_freq", 1);
  }
  m.latent.q_lora_rank = c.number("q_lora_rank", 0);
  m.latent.kv_lora_rank = c.number("kv_lora_rank");
  m.latent.qk_nope_head_dim = c.number("qk_nope_head_dim");
  m.latent.qk_rope_head_dim = c.number("qk_rope_head_dim");
  m.latent.v_head_dim = c.number("v_head_dim");
}

using Reader = void (*)(Model&, const Config&);
Reader reader_of(const std::string& family) {
  static const std::pair<const char*, Reader> readers[] = {{"gpt2", gpt2},
                                                           {"gptj", gpt2},
                                                           {"opt", opt},
                                                           {"bloom", bloom},
                                                           {"falcon", falcon},
                                                           {"gpt_neox", gpt_neox},
                                                           {"phi", phi},
                                                           {"llama", llama},
                                                           {"mistral", llama},
                                                           {"qwen2", llama},
                                                           {"qwen3", llama},
                                                           {"phi3", llama},
                                                           {"mixtral", mixtral},
                                                           {"qwen2_moe", qwen_moe},
                                                           {"qwen3_moe", qwen_moe},
                                                           {"deepseek_v2", deepseek},
                                                           {"deepseek_v3", deepseek}};
  for (const auto& [name, reader] : readers) {
    if (family == name) return reader;
  }
  return nullptr;
}

}  // namespace

Model model_from_huggingface(const nlohmann::json& json, const std::string& source) {
  Config c(json, source);
  // Vision-language configs keep the transformer one level down.
  if (!c.has("model_type") && json.contains("text_config") && json["text_config"].is_object())
    return model_from_huggingface(json["text_config"], source);
  std::string family = c.text("model_type");
  if (family.empty()) refuse_at(source, "model_type is missing; it must be one of " + known_families());
  if (family == "RefinedWeb" || family == "RefinedWebModel") family = "falcon";
  const Reader reader = reader_of(family);
  if (!reader) {
    if (json.contains("text_config") && json["text_config"].is_object())
      return model_from_huggingface(json["text_config"], source);
    refuse_at(source,
              fmt::format("model_type '{}' is not known; it must be one of {}", family, known_families()));
  }
  Model m;
  apply_family(m, family);
  m.name = source;
  reader(m, c);
  if (m.kv_heads == 0)
    derived_head(m, c);
  else if (m.head_dim == 0) {
    Model copy = m;
    derived_head(copy, c);
    m.head_dim = copy.head_dim;
  }
  // transformers ties embeddings unless told otherwise for the old families, and these families set false
  // themselves.
  m.tied_embeddings = c.flag("tie_word_embeddings", m.tied_embeddings);
  check(m, source);
  return m;
}

}  // namespace medley::model

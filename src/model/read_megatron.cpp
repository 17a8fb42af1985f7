// Megatron-LM arguments as a model: a shell script, an argument file or text that starts with `--`.
#include <fmt/format.h>

#include <map>

#include "model/families.hpp"
#include "model/read_model.hpp"

namespace medley::model {

Model model_from_megatron(const Arguments& arguments, const std::string& source) {
  std::map<std::string, std::string> given;
  for (const auto& [key, value] : arguments) {
    const auto [at, fresh] = given.emplace(key, value);
    if (!fresh) at->second = value;  // argparse keeps the last one
  }
  const auto has = [&](const char* key) { return given.count(key) > 0; };
  const auto spelled = [](std::string key) {
    for (char& c : key) c = c == '_' ? '-' : c;
    return "--" + key;
  };
  const auto number = [&](const char* key) {
    if (!has(key)) refuse_at(source, fmt::format("{} is missing", spelled(key)));
    return parse_count(given.at(key), source, spelled(key));
  };
  const auto number_or = [&](const char* key, Count fallback) { return has(key) ? number(key) : fallback; };

  Model m;
  m.name = source;
  m.family = "gpt";
  m.fused_qkv = m.fused_gate = true;
  m.layers = number("num_layers");
  m.hidden = number("hidden_size");
  m.heads = number("num_attention_heads");
  m.seq = has("seq_length") ? number("seq_length") : number("max_position_embeddings");
  if (m.heads < 1 || (!has("kv_channels") && m.hidden % m.heads != 0)) {
    refuse_at(source, fmt::format("--hidden-size {} is not divisible by --num-attention-heads {}", m.hidden, m.heads));
  }
  m.head_dim = number_or("kv_channels", m.hidden / m.heads);
  m.kv_heads = number_or("num_query_groups", m.heads);
  m.gated = has("swiglu");
  m.ffn = number_or("ffn_hidden_size", m.gated ? product({8, m.hidden}) / 3 / 64 * 64 : product({4, m.hidden}));
  const Count padding =
      product({number_or("make_vocab_size_divisible_by", 128), number_or("tensor_model_parallel_size", 1)});
  if (padding < 1) refuse_at(source, "--make-vocab-size-divisible-by must be at least 1");
  // Without --vocab-size the tokenizer decides; Megatron's usual one is GPT-2's.
  const Count vocabulary = number_or("vocab_size", 50257);
  if (vocabulary < 1) refuse_at(source, "--vocab-size must be at least 1");
  m.vocab = round_up(vocabulary, padding);
  const std::string kind = has("position_embedding_type") ? given.at("position_embedding_type") : "learned_absolute";
  if (has("use_rotary_position_embeddings") || kind == "rope" || kind == "yarn" || kind == "mrope")
    m.positions = Positions::rotary;
  else if (kind == "none" || has("no_position_embedding")) m.positions = Positions::none;
  else if (kind == "learned_absolute") m.positions = Positions::learned;
  else
    refuse_at(source,
              fmt::format("--position-embedding-type is '{}'; it must be learned_absolute, rope or none", kind));
  if (m.positions == Positions::learned) m.position_rows = number_or("max_position_embeddings", m.seq);
  m.norm = has("normalization") && given.at("normalization") == "RMSNorm" ? Norm::rms : Norm::layer;
  const bool bias = !has("disable_bias_linear");
  m.qkv_bias = bias || has("add_qkv_bias");
  m.projection_bias = m.mlp_bias = bias;
  m.qk_norm = has("qk_layernorm") ? QkNorm::head : QkNorm::none;
  // --window-size 4096,0 or (4096, 0): tokens to the left and right; --window-attn-skip-freq: every n-th
  // layer is full.
  if (has("window_size")) {
    const std::string left = given.at("window_size").substr(given.at("window_size").starts_with('('));
    m.window = parse_count(split(left, ',')[0], source, "--window-size");
    const Count full = number_or("window_attn_skip_freq", 0);
    if (full > 16384) refuse_at(source, fmt::format("--window-attn-skip-freq {} is above 16384", full));
    if (full > 0) m.spans = std::string(static_cast<std::size_t>(full - 1), 'W') + 'F';
  }
  m.tied_embeddings = !has("untie_embeddings_and_output_weights");
  m.experts = number_or("num_experts", 0);
  if (m.experts > 0) {
    m.top_k = number_or("moe_router_topk", 2);
    m.moe_ffn = number_or("moe_ffn_hidden_size", m.ffn);
    m.shared_ffn = number_or("moe_shared_expert_intermediate_size", 0);
    m.mlp_bias = false;
  }
  check(m, source);
  return m;
}

}  // namespace medley::model

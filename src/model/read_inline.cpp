// A model in one line: `h=3072,a=32,layers=30,vocab=51200,seq=2048`, with short names or the frameworks'
// spellings. Without `family=` it is a GPT: learned positions, biases, tied embeddings.
#include <fmt/format.h>

#include <map>

#include "model/families.hpp"
#include "model/read_model.hpp"

namespace medley::model {
namespace {

const std::map<std::string, Count Model::*>& number_keys() {
  static const std::map<std::string, Count Model::*> keys = {{"h", &Model::hidden},
                                                             {"hidden", &Model::hidden},
                                                             {"hidden_size", &Model::hidden},
                                                             {"n_embd", &Model::hidden},
                                                             {"n_embed", &Model::hidden},
                                                             {"d_model", &Model::hidden},
                                                             {"a", &Model::heads},
                                                             {"heads", &Model::heads},
                                                             {"num_attention_heads", &Model::heads},
                                                             {"n_head", &Model::heads},
                                                             {"kv", &Model::kv_heads},
                                                             {"kv_heads", &Model::kv_heads},
                                                             {"num_key_value_heads", &Model::kv_heads},
                                                             {"num_kv_heads", &Model::kv_heads},
                                                             {"num_query_groups", &Model::kv_heads},
                                                             {"head_dim", &Model::head_dim},
                                                             {"kv_channels", &Model::head_dim},
                                                             {"l", &Model::layers},
                                                             {"layers", &Model::layers},
                                                             {"num_layers", &Model::layers},
                                                             {"num_hidden_layers", &Model::layers},
                                                             {"n_layer", &Model::layers},
                                                             {"ffn", &Model::ffn},
                                                             {"intermediate_size", &Model::ffn},
                                                             {"ffn_hidden_size", &Model::ffn},
                                                             {"n_inner", &Model::ffn},
                                                             {"ffn_dim", &Model::ffn},
                                                             {"v", &Model::vocab},
                                                             {"vocab", &Model::vocab},
                                                             {"vocab_size", &Model::vocab},
                                                             {"s", &Model::seq},
                                                             {"seq", &Model::seq},
                                                             {"seq_length", &Model::seq},
                                                             {"max_position_embeddings", &Model::seq},
                                                             {"n_positions", &Model::seq},
                                                             {"experts", &Model::experts},
                                                             {"num_experts", &Model::experts},
                                                             {"num_local_experts", &Model::experts},
                                                             {"n_routed_experts", &Model::experts},
                                                             {"top_k", &Model::top_k},
                                                             {"topk", &Model::top_k},
                                                             {"k", &Model::top_k},
                                                             {"num_experts_per_tok", &Model::top_k},
                                                             {"moe_router_topk", &Model::top_k},
                                                             {"moe_ffn", &Model::moe_ffn},
                                                             {"moe_intermediate_size", &Model::moe_ffn},
                                                             {"moe_ffn_hidden_size", &Model::moe_ffn},
                                                             {"shared_ffn", &Model::shared_ffn},
                                                             {"shared_expert_intermediate_size", &Model::shared_ffn},
                                                             {"window", &Model::window},
                                                             {"sliding_window", &Model::window},
                                                             {"moe_every", &Model::moe_every},
                                                             {"decoder_sparse_step", &Model::moe_every},
                                                             {"first_dense_layers", &Model::first_dense_layers},
                                                             {"first_k_dense_replace", &Model::first_dense_layers}};
  return keys;
}

bool set_habit(Model& m, const std::string& key, const std::string& value) {
  const auto on = [&] { return parse_switch(value, "--model", key); };
  if (key == "gated" || key == "swiglu") m.gated = on();
  else if (key == "squared_relu") m.squared_relu = on();
  else if (key == "clamped_gate") m.clamped_gate = on();
  else if (key == "tied" || key == "tie_word_embeddings") m.tied_embeddings = on();
  else if (key == "bias" || key == "biases") m.qkv_bias = m.projection_bias = m.mlp_bias = on();
  else if (key == "qkv_bias") m.qkv_bias = on();
  else if (key == "fused_qkv") m.fused_qkv = on();
  else if (key == "qk_norm") m.qk_norm = on() ? QkNorm::head : QkNorm::none;
  else if (key == "parallel" || key == "use_parallel_residual") m.parallel_block = on();
  else if (key == "name") m.name = value;
  else if (key == "spans") {
    if (value.empty() || value.size() > 16384 || value.find_first_not_of("FWL") != std::string::npos)
      refuse_at("--model", fmt::format("spans is '{}'; it must be one letter a layer: F full, W window, L linear",
                                       value.substr(0, 64)));
    m.spans = value;
  } else if (key == "norm") {
    if (value != "layer" && value != "rms")
      refuse_at("--model", fmt::format("norm is '{}'; it must be layer or rms", value));
    m.norm = value == "rms" ? Norm::rms : Norm::layer;
  } else if (key == "positions") {
    static const std::map<std::string, Positions> kinds = {{"rotary", Positions::rotary},
                                                           {"learned", Positions::learned},
                                                           {"alibi", Positions::alibi},
                                                           {"none", Positions::none}};
    const auto kind = kinds.find(value);
    if (kind == kinds.end())
      refuse_at("--model", fmt::format("positions is '{}'; it must be rotary, learned, alibi or none", value));
    m.positions = kind->second;
  } else {
    return false;
  }
  return true;
}

}  // namespace

Model model_from_inline(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> items;
  std::string family = "gpt2";
  for (const std::string& item : split(text, ',')) {
    const auto equals = item.find('=');
    if (equals == std::string::npos) refuse_at("--model", fmt::format("'{}' is not key=value", item));
    const std::string key = plain_key(trimmed(item.substr(0, equals))), value = trimmed(item.substr(equals + 1));
    if (key == "family" || key == "model_type") family = value;
    else items.emplace_back(key, value);
  }
  Model m;
  if (!apply_family(m, family))
    refuse_at("--model", fmt::format("family '{}' is not known; it must be one of {}", family, known_families()));
  m.name = "inline";
  std::map<Count Model::*, std::string, bool (*)(Count Model::*, Count Model::*)> seen(
      [](Count Model::*a, Count Model::*b) {
        const Model probe;  // members have no order of their own, but their addresses have
        return &(probe.*a) < &(probe.*b);
      });
  for (const auto& [key, value] : items) {
    const auto number = number_keys().find(key);
    if (number == number_keys().end()) {
      if (!set_habit(m, key, value)) refuse_at("--model", fmt::format("key '{}' is not known", key));
      continue;
    }
    const auto [at, fresh] = seen.emplace(number->second, key);
    const Count count = parse_count(value, "--model", key);
    if (!fresh && m.*(number->second) != count)
      refuse_at("--model", fmt::format("{} is {} but {} is {}", at->second, m.*(number->second), key, count));
    m.*(number->second) = count;
  }
  if (m.hidden < 1) refuse_at("--model", "hidden_size (h) is missing or below 1");
  if (m.heads < 1) refuse_at("--model", "num_attention_heads (a) is missing or below 1");
  if (m.layers < 1) refuse_at("--model", "num_hidden_layers (layers) is missing or below 1");
  if (m.vocab < 1) refuse_at("--model", "vocab_size (vocab) is missing or below 1");
  if (m.seq < 1) refuse_at("--model", "max_position_embeddings (seq) is missing or below 1");
  if (m.kv_heads == 0) m.kv_heads = m.heads;
  if (m.head_dim == 0 && m.hidden % m.heads != 0)
    refuse_at("--model", fmt::format("hidden_size {} is not divisible by num_attention_heads {}; give head_dim",
                                     m.hidden, m.heads));
  if (m.head_dim == 0) m.head_dim = m.hidden / m.heads;
  if (m.ffn == 0) m.ffn = m.gated ? m.hidden * 8 / 3 / 64 * 64 : product({4, m.hidden});
  if (m.moe() && m.moe_ffn == 0) m.moe_ffn = m.ffn;
  if (m.positions == Positions::learned) m.position_rows = m.seq;
  check(m, "--model");
  return m;
}

}  // namespace medley::model

// A GPT-NeoX yml as a model: `-` and `_` spellings, a vocabulary given by the tokenizer, widths of gated
// MLPs.
#include <fmt/format.h>

#include <algorithm>

#include "model/families.hpp"
#include "model/read_model.hpp"
#include "model/yaml.hpp"

namespace medley::model {

Model model_from_neox(const std::string& yaml, const std::string& source) {
  const YamlMap keys(yaml, source);
  Model m;
  apply_family(m, "gpt_neox");
  m.name = source;
  m.layers = keys.number("num_layers");
  m.hidden = keys.number("hidden_size");
  m.heads = keys.number("num_attention_heads");
  m.kv_heads = keys.number("num_kv_heads", m.heads);
  m.seq = keys.number("seq_length");
  if (m.heads < 1 || m.hidden % m.heads != 0)
    refuse_at(source, fmt::format("hidden_size {} is not divisible by num_attention_heads {}", m.hidden, m.heads));
  m.head_dim = m.hidden / m.heads;
  if (m.hidden < 1 || m.hidden > (Count{1} << 24))
    refuse_at(source, fmt::format("hidden_size is {}; it must lie between 1 and 2^24", m.hidden));
  const std::string activation = keys.text("activation", "gelu");
  m.gated = activation == "swiglu" || activation == "geglu" || activation == "reglu" || activation == "bilinear" ||
            activation == "glu";
  if (keys.has("intermediate_size") && keys.has("expansion_factor"))
    refuse_at(source, "intermediate_size and expansion_factor exclude each other");
  const double expansion = keys.real("expansion_factor", 4);
  if (!(expansion > 0) || expansion > 1e6) refuse_at(source, "expansion_factor must lie between 0 and a million");
  m.ffn = keys.has("intermediate_size") ? keys.number("intermediate_size")
                                        : static_cast<Count>(expansion * static_cast<double>(m.hidden));
  // NeoX scales gated MLPs to equal parameters: the key counts gate, up and down together.
  if (m.gated) m.ffn = product({m.ffn, 2}) / 3 / 2;
  const Count multiple = keys.number("mlp_multiple_of", 1);
  if (multiple < 1) refuse_at(source, "mlp_multiple_of must be at least 1");
  m.ffn = round_up(std::max<Count>(m.ffn, 0), multiple);
  // The tokenizer determines the vocabulary; most configs use the 20B tokenizer (50,277 tokens before
  // padding).
  const Count padding =
      product({keys.number("make_vocab_size_divisible_by", 128), keys.number("model_parallel_size", 1)},
              "make_vocab_size_divisible_by");
  if (padding < 1) refuse_at(source, "make_vocab_size_divisible_by must be at least 1");
  const std::string tokenizer = keys.text("tokenizer_type", "");
  const Count vocabulary = keys.number("vocab_size", tokenizer == "GPT2BPETokenizer" ? 50257 : 50277);
  if (vocabulary < 1) refuse_at(source, "vocab_size must be at least 1");
  m.vocab = round_up(vocabulary, padding);
  const std::string positions = keys.text("pos_emb", "learned");
  m.positions = positions == "rotary"    ? Positions::rotary
                : positions == "alibi"   ? Positions::alibi
                : positions == "learned" ? Positions::learned
                                         : Positions::none;
  m.position_rows = m.positions == Positions::learned ? keys.number("max_position_embeddings", m.seq) : 0;
  const std::string norm = keys.text("norm", "layernorm");
  m.norm = norm == "rmsnorm" ? Norm::rms : Norm::layer;
  m.tied_embeddings = !keys.flag("no_weight_tying", false);
  m.parallel_block = keys.flag("gpt_j_residual", false);
  m.qkv_bias = keys.flag("use_bias_in_attn_linear", true);
  m.projection_bias = m.qkv_bias;
  m.mlp_bias = keys.flag("use_bias_in_mlp", true);
  m.experts = keys.number("moe_num_experts", 0);
  if (m.experts <= 1) m.experts = 0;
  if (m.experts > 0) {
    m.top_k = keys.number("moe_top_k", 1);
    m.moe_ffn = m.ffn;
    m.moe_every = keys.number("expert_interval", 2);
  }
  check(m, source);
  return m;
}

}  // namespace medley::model

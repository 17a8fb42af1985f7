#include "model/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "model/family_table.hpp"
#include "model/text.hpp"

namespace medley::model {
namespace {

struct NumberField {
  std::string_view name;
  std::string_view key;  ///< its name in errors
  Count Model::*member;
  bool size = true;  ///< differs between models: only a config gives it
};
// In the order of evaluation: an expression may use fields above its own.
constexpr std::array number_fields{
    NumberField{"hidden", "hidden_size", &Model::hidden},
    NumberField{"heads", "num_attention_heads", &Model::heads},
    NumberField{"kv_heads", "num_key_value_heads", &Model::kv_heads},
    NumberField{"head_dim", "head_dim", &Model::head_dim},
    NumberField{"layers", "num_hidden_layers", &Model::layers},
    NumberField{"vocab", "vocab_size", &Model::vocab},
    NumberField{"seq", "max_position_embeddings", &Model::seq},
    NumberField{"position_rows", "position rows", &Model::position_rows},
    NumberField{"embedding_width", "word_embed_proj_dim", &Model::embedding_width},
    NumberField{"ffn", "intermediate_size", &Model::ffn},
    NumberField{"experts", "num_experts", &Model::experts},
    NumberField{"top_k", "num_experts_per_tok", &Model::top_k},
    NumberField{"moe_ffn", "moe_intermediate_size", &Model::moe_ffn},
    NumberField{"shared_ffn", "shared_expert_intermediate_size", &Model::shared_ffn},
    NumberField{"first_dense_layers", "first_k_dense_replace", &Model::first_dense_layers},
    NumberField{"moe_every", "decoder_sparse_step", &Model::moe_every},
    NumberField{"norms", "norms of a layer", &Model::norms_per_layer, false},
    NumberField{"window", "sliding_window", &Model::window, false},
};

struct LatentField {
  std::string_view name;
  Count LatentAttention::*member;
};
constexpr std::array latent_fields{LatentField{"q_lora_rank", &LatentAttention::q_lora_rank},
                                   LatentField{"kv_lora_rank", &LatentAttention::kv_lora_rank},
                                   LatentField{"qk_nope_head_dim", &LatentAttention::qk_nope_head_dim},
                                   LatentField{"qk_rope_head_dim", &LatentAttention::qk_rope_head_dim},
                                   LatentField{"v_head_dim", &LatentAttention::v_head_dim}};

struct SwitchField {
  std::string_view name;
  bool Model::*member;
};
constexpr std::array switch_fields{SwitchField{"gated", &Model::gated},
                                   SwitchField{"tied", &Model::tied_embeddings},
                                   SwitchField{"qkv_bias", &Model::qkv_bias},
                                   SwitchField{"projection_bias", &Model::projection_bias},
                                   SwitchField{"mlp_bias", &Model::mlp_bias},
                                   SwitchField{"head_bias", &Model::head_bias},
                                   SwitchField{"router_bias", &Model::router_bias},
                                   SwitchField{"sinks", &Model::sinks},
                                   SwitchField{"squared_relu", &Model::squared_relu},
                                   SwitchField{"clamped_gate", &Model::clamped_gate},
                                   SwitchField{"parallel", &Model::parallel_block},
                                   SwitchField{"fused_qkv", &Model::fused_qkv},
                                   SwitchField{"fused_gate", &Model::fused_gate},
                                   SwitchField{"embedding_norm", &Model::embedding_norm},
                                   SwitchField{"final_norm", &Model::final_norm},
                                   SwitchField{"shared_gate", &Model::shared_gate},
                                   SwitchField{"chunked", &Model::chunked}};

/// One evaluation of the table: with a config, or for a family in general.
class Evaluation {
 public:
  Evaluation(const Family& family, const Config* config) : family_(family), config_(config) {
    model_.qkv_bias = model_.projection_bias = model_.mlp_bias = false;
  }

  Model read(const Model& start) {
    model_ = start;
    for (const auto& field : latent_fields)
      if (config_ && source_of(field.name)) model_.latent.*field.member = number(field.name, field.name);
    for (const auto& field : number_fields)
      if ((config_ || !field.size) && source_of(field.name)) {
        if (const auto value = number_if_there(field.name, field.key)) model_.*field.member = *value;
      }
    for (const auto& field : switch_fields) read_switch(field);
    read_words();
    read_lists();
    return model_;
  }

 private:
  bool holds(const Condition& c) const {
    const bool there = config_ && config_->has(c.key);
    bool value = there ? (c.text.empty() ? config_->truthy(c.key) : config_->text(c.key) == c.text) : c.when_missing;
    return value != c.negated;
  }

  const std::string* source_of(std::string_view field) const {
    const std::string* found = nullptr;
    for (const Assignment& a : family_.assignments)
      if (a.field == field && std::ranges::all_of(a.conditions, [&](const Condition& c) { return holds(c); }))
        found = &a.source;
    return found;
  }

  /// The spelling of `$a~b` that the config uses; empty: none.
  std::string_view key_of(std::string_view term) const {
    if (!config_) return {};
    keys_ = split(term.substr(1), '~');
    return config_->spelling(keys_);
  }

  std::optional<Count> term_value(std::string_view term) const {
    if (term.starts_with('$')) {
      const std::string_view key = key_of(term);
      if (key.empty()) return std::nullopt;
      return config_->number(key);
    }
    if (std::isdigit(static_cast<unsigned char>(term[0]))) return parse_count(term, "families.txt", term);
    for (const auto& field : number_fields)
      if (field.name == term) return model_.*field.member;
    for (const auto& field : latent_fields)
      if (field.name == term) return model_.latent.*field.member;
    refuse_at("families.txt", fmt::format("'{}' is no field", term));
  }

  Count divided(Count a, std::string_view by, Count b, std::string_view what) const {
    if (b > 0 && a % b == 0) return a / b;
    const auto divisor = std::ranges::find(number_fields, by, &NumberField::name);
    refuse_at(config_->source(),
              fmt::format("hidden_size {} is not divisible by {} {} and {} is missing", a, divisor->key, b, what));
  }

  std::optional<Count> arithmetic(std::string_view text, std::string_view what) const {
    std::optional<Count> value;
    char op = 0;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find_first_of("*/+"), text.size());
      const auto term = term_value(text.substr(0, end));
      if (!term) return std::nullopt;
      if (!value) value = term;
      else if (op == '*') value = product({*value, *term}, what);
      else if (op == '+') value = sum(*value, *term, what);
      else value = divided(*value, text.substr(0, end), *term, what);
      if (end == text.size()) break;
      op = text[end];
      text.remove_prefix(end + 1);
    }
    return value;
  }

  std::optional<Count> number_if_there(std::string_view field, std::string_view key) const {
    const std::string* source = source_of(field);
    if (!source) return std::nullopt;
    for (const std::string& alternative : split(*source, '|'))
      if (const auto value = arithmetic(alternative, key)) return value;
    if (!config_) return std::nullopt;
    const std::size_t dollar = source->find('$');
    refuse_at(
        config_->source(),
        fmt::format("{} is missing", source->substr(dollar + 1, source->find_first_of("~|*", dollar) - dollar - 1)));
  }
  Count number(std::string_view field, std::string_view key) const { return *number_if_there(field, key); }

  void read_switch(const SwitchField& field) {
    const std::string* source = source_of(field.name);
    if (!source) return;
    for (const std::string& alternative : split(*source, '|')) {
      if (!alternative.starts_with('$')) {
        model_.*field.member = alternative == "yes";
        return;
      }
      if (const std::string_view key = key_of(alternative); !key.empty()) {
        model_.*field.member = config_->flag(key);
        return;
      }
    }
  }

  void read_words() {
    if (const std::string* s = source_of("norm"))
      model_.norm = *s == "rms"                  ? Norm::rms
                    : *s == "plain"              ? Norm::plain
                    : *s == "layer_without_bias" ? Norm::layer_without_bias
                                                 : Norm::layer;
    if (const std::string* s = source_of("positions"))
      model_.positions = *s == "learned" ? Positions::learned : *s == "alibi" ? Positions::alibi : Positions::rotary;
    if (const std::string* s = source_of("qk_norm")) model_.qk_norm = *s == "head" ? QkNorm::head : QkNorm::width;
  }

  // every($n): n − 1 layers with the window, then a full one; from($n): full up to layer n.
  std::optional<std::string> spans_from(const std::string& alternative) const {
    const auto open = alternative.find('(');
    if (alternative.starts_with('$')) {
      const std::string_view key = key_of(alternative);
      if (key.empty()) return std::nullopt;
      const std::string spans = config_->spans(key);
      if (Count(spans.size()) != model_.layers)
        refuse_at(config_->source(),
                  fmt::format("{} names {} layers, but num_hidden_layers is {}", key, spans.size(), model_.layers));
      return spans;
    }
    if (open == std::string::npos) return alternative;
    const auto n = term_value(alternative.substr(open + 1, alternative.size() - open - 2));
    if (!n) return std::nullopt;
    const Count layers = std::clamp<Count>(model_.layers, 0, 16384), most = std::clamp<Count>(*n, 0, layers);
    if (alternative.starts_with("every"))
      return most > 0 ? std::string(static_cast<std::size_t>(most - 1), 'W') + 'F' : std::string{};
    return std::string(static_cast<std::size_t>(most), 'F') + std::string(static_cast<std::size_t>(layers - most), 'W');
  }

  void read_lists() {
    if (const std::string* source = source_of("spans")) {
      for (const std::string& alternative : split(*source, '|')) {
        if (const auto spans = spans_from(alternative)) {
          model_.spans = *spans;
          break;
        }
      }
    }
    const std::string* dense = source_of("dense_layers");
    if (dense && config_ && config_->has(dense->substr(1))) model_.dense_layers = config_->numbers(dense->substr(1));
  }

  const Family& family_;
  const Config* config_;
  Model model_;
  mutable std::vector<std::string> keys_;
};

Model plain_start(std::string_view family) {
  Model m;
  m.family = family;
  m.qkv_bias = m.projection_bias = m.mlp_bias = false;
  return m;
}

/// 0 to 2: the similarity of two names, by edit distance and common prefix.
double likeness(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = corner + (a[i] != b[j]);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j + 1] + 1, row[j] + 1});
    }
  }
  const auto prefix = std::ranges::mismatch(a, b).in1 - a.begin();
  return 1 - double(row[b.size()]) / double(std::max<std::size_t>(1, std::max(a.size(), b.size()))) +
         2 * double(prefix) / double(std::max<std::size_t>(1, a.size() + b.size()));
}

}  // namespace

bool known_family(std::string_view name) { return find_family(name) != nullptr; }

bool apply_family(Model& model, std::string_view name) {
  const Family* family = find_family(name);
  if (!family) return false;
  Model start = model;
  start.family = name;
  start.qkv_bias = start.projection_bias = start.mlp_bias = false;
  model = Evaluation(*family, nullptr).read(start);
  return true;
}

Model model_of_family(std::string_view name, const Config& config) {
  Model m = Evaluation(*find_family(name), &config).read(plain_start(name));
  m.name = config.source();
  if (m.embedding_width == m.hidden) m.embedding_width = 0;
  return m;
}

std::string known_families() {
  std::string text;
  for (const Family& family : families()) text += (text.empty() ? "" : ", ") + family.name;
  return text;
}

std::string nearest_family(std::string_view name, const Config& config) {
  const Family& best = *std::ranges::max_element(
      families(), {}, [&](const Family& family) { return likeness(name.substr(0, 64), family.name); });
  if (likeness(name.substr(0, 64), best.name) >= 0.9) return best.name;
  if (config.has("kv_lora_rank")) return "deepseek_v3";
  if (config.has("n_routed_experts")) return "glm4_moe";
  if (config.has("num_experts")) return "qwen3_moe";
  if (config.has("num_local_experts")) return "mixtral";
  return config.has("n_embd") ? "gpt2" : "llama";
}

}  // namespace medley::model

#include "shape/lint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace medley::shape {
namespace {

// The usual spelling first. NeoX and Megatron accept dashes and underscores alike.
std::vector<std::string_view> spellings(Knob knob) {
  switch (knob) {
    case Knob::vocabulary: return {"vocab_size", "padded_vocab_size", "make_vocab_size_divisible_by", "vocab"};
    case Knob::heads: return {"num_attention_heads", "n_head", "num_heads", "heads"};
    case Knob::ffn: return {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "expansion_factor", "ffn"};
    case Knob::expert_ffn: return {"moe_intermediate_size", "moe_ffn_hidden_size", "intermediate_size", "moe_ffn"};
    case Knob::hidden: return {"hidden_size", "n_embd", "n_embed", "d_model", "hidden"};
    case Knob::layers: return {"num_hidden_layers", "n_layer", "num_layers", "layers"};
    case Knob::micro_batch: return {"micro_batch"};
    case Knob::tensor_parallel: return {"tp"};
  }
  return {""};
}

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; }

// `key` as a whole word; leading dashes of an argument are ignored.
bool mentions(std::string_view text, const std::string& key) {
  for (auto at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    const std::size_t end = at + key.size();
    const bool starts = at == 0 || !word_character(text[at - 1]) || (at >= 2 && text.substr(at - 2, 2) == "--");
    if (starts && (end == text.size() || !word_character(text[end]))) return true;
  }
  return false;
}

void add_impossible(std::vector<Finding>& out, const Model& model, const Layout& layout, std::string_view text) {
  const auto must_split = [&](Knob knob, Count value) {
    if (layout.tp < 1 || value % layout.tp == 0) return;
    out.push_back(
        {.knob = knob,
         .key = key_of(knob, text),
         .value = value,
         .waste = 1,
         .why = fmt::format("cannot be split over tp {}; {} can", layout.tp, plan::round_up(value, layout.tp))});
  };
  must_split(Knob::heads, model.heads);
  if (model.moe_layers() < model.layers) must_split(Knob::ffn, model.ffn);
  if (model.moe()) must_split(Knob::expert_ffn, model.moe_ffn);
}

/// The share of the time that is saved by running faster by `gain`.
double saved_share(double gain) { return 1 - 1 / (1 + gain); }

bool of_the_model(Knob knob) { return knob != Knob::micro_batch && knob != Knob::tensor_parallel; }

}  // namespace

std::string key_of(Knob knob, std::string_view text) {
  const auto keys = spellings(knob);
  for (const std::string_view key : keys) {
    std::string spelled(key);
    if (mentions(text, spelled)) return spelled;
    std::ranges::replace(spelled, '_', '-');
    if (mentions(text, spelled)) return spelled;
  }
  return std::string(keys.front());
}

LintFindings lint(Pricer& pricer, const Model& model, Workload work, double allow, std::string_view text) {
  LintFindings out;
  add_impossible(out.findings, model, work.layout, text);
  if (!out.findings.empty()) return out;
  check(model, work);
  AdviceLimits limits;
  limits.worthwhile = std::min(limits.worthwhile, allow);
  std::vector<Advice> found = advise(pricer, model, work, limits);
  std::erase_if(found, [&](const Advice& advice) {
    return !of_the_model(advice.change.knob) || saved_share(advice.net_gain()) <= allow;
  });
  for (const Advice& advice : found)
    out.findings.push_back({.knob = advice.change.knob,
                            .key = key_of(advice.change.knob, text),
                            .value = advice.change.was,
                            .better = advice.change.now,
                            .waste = saved_share(advice.net_gain()),
                            .why = advice.why});
  out.together = saved_share(apply(pricer, model, work, found).net_gain());
  return out;
}

}  // namespace medley::shape

#include "shape/changes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace medley::shape {
namespace {

constexpr Count least_head_dim = 32, most_head_dim = 256;  // the range of fused kernels

Change start(Knob knob, const Model& model, const Workload& work, Count was, Count now) {
  return {.knob = knob, .was = was, .now = now, .model = model, .work = work};
}

bool can_split(const Model& model, const Layout& layout) {
  return model.heads > 0 && model.kv_heads > 0 && model.heads % layout.tp == 0 && model.heads % model.kv_heads == 0 &&
         (model.kv_heads % layout.tp == 0 || layout.tp % model.kv_heads == 0) && model.head_dim >= least_head_dim &&
         model.head_dim <= most_head_dim;
}

Count& ffn_of(Model& model, Knob knob) { return knob == Knob::expert_ffn ? model.moe_ffn : model.ffn; }

// All multiples of `unit` within `tolerance` of `value`, except the value itself.
std::vector<Count> multiples_near(Count value, Count unit, double tolerance) {
  std::vector<Count> out;
  const auto low = Count(std::ceil(double(value) * (1 - tolerance) / double(unit)));
  const auto high = Count(double(value) * (1 + tolerance) / double(unit));
  for (Count i = std::max<Count>(1, low); i <= high; ++i)
    if (i * unit != value) out.push_back(i * unit);
  return out;
}

}  // namespace

std::string_view name(Knob knob) noexcept {
  constexpr std::array<std::string_view, 8> names{"vocab",  "heads",  "ffn",         "moe_ffn",
                                                  "hidden", "layers", "micro_batch", "tp"};
  return names[std::size_t(knob)];
}

Changes vocabulary_changes(const Model& model, const Workload& work) {
  std::set<Count> widths;
  for (const Count unit : {8, 16, 32, 64, 128}) widths.insert(plan::round_up(model.vocab, unit * work.layout.tp));
  widths.erase(model.vocab);
  Changes out;
  for (const Count vocab : widths) {
    out.push_back(start(Knob::vocabulary, model, work, model.vocab, vocab));
    out.back().model.vocab = vocab;
  }
  return out;
}

Changes head_changes(const Model& model, const Workload& work) {
  Changes out;
  if (model.latent_attention()) return out;  // its head widths are already independent of hidden
  const Count width = model.heads * model.head_dim, kv_width = model.kv_heads * model.head_dim;
  for (Count heads = plan::ceil_div(model.heads, 2); heads <= 2 * model.heads; ++heads) {
    if (heads == model.heads || width % heads != 0) continue;
    Change change = start(Knob::heads, model, work, model.heads, heads);
    change.model.heads = heads;
    change.model.head_dim = width / heads;
    if (kv_width % change.model.head_dim != 0) continue;  // grouped keys also keep their width
    change.model.kv_heads = kv_width / change.model.head_dim;
    if (can_split(change.model, work.layout)) out.push_back(std::move(change));
  }
  return out;
}

Changes ffn_changes(const Model& model, const Workload& work, double tolerance) {
  Changes out;
  for (const Knob knob : {Knob::ffn, Knob::expert_ffn}) {
    if (knob == Knob::expert_ffn ? !model.moe() : model.moe_layers() == model.layers) continue;
    Model copy = model;
    const Count width = ffn_of(copy, knob);
    for (const Count near : multiples_near(width, Count{8} * work.layout.tp, tolerance)) {
      out.push_back(start(knob, model, work, width, near));
      ffn_of(out.back().model, knob) = near;
    }
  }
  return out;
}

Changes hidden_changes(const Model& model, const Workload& work, double tolerance) {
  Changes out;
  if (model.latent_attention()) return out;
  const Count unit = 64;
  for (const Count hidden : multiples_near(model.hidden, unit, tolerance)) {
    Change change = start(Knob::hidden, model, work, model.hidden, hidden);
    Model& m = change.model;
    m.hidden = hidden;
    if (m.embedding_width == model.hidden) m.embedding_width = hidden;
    // multiples such as 4h stay multiples; other widths are rounded to sizes that are aligned on every rank
    for (const Knob knob : {Knob::ffn, Knob::expert_ffn}) {
      Count& width = ffn_of(m, knob);
      const double scaled = double(width) * double(hidden) / double(model.hidden);
      const Count step = 64 * Count{work.layout.tp};
      width = width % model.hidden == 0 ? width / model.hidden * hidden : std::llround(scaled / double(step)) * step;
    }
    const bool tied_to_hidden = model.heads * model.head_dim == model.hidden;
    if (!tied_to_hidden) {
      out.push_back(std::move(change));
      continue;
    }
    if (hidden % model.head_dim == 0) {  // the same head width, more or fewer heads
      Change same_width = change;
      same_width.model.heads = hidden / model.head_dim;
      if (model.kv_heads == model.heads) same_width.model.kv_heads = same_width.model.heads;
      if (can_split(same_width.model, work.layout)) out.push_back(std::move(same_width));
    }
    if (hidden % model.heads == 0) {  // the same number of heads, wider or narrower
      m.head_dim = hidden / model.heads;
      if (can_split(m, work.layout)) out.push_back(std::move(change));
    }
  }
  return out;
}

Changes layer_changes(const Model& model, const Workload& work) {
  Changes out;
  const Count pp = work.layout.pp, below = model.layers / pp * pp;
  if (model.layers % pp == 0) return out;
  for (const Count layers : {below, below + pp}) {
    if (layers < pp || !model.dense_layers.empty()) continue;  // layers listed one by one would lose their meaning
    out.push_back(start(Knob::layers, model, work, model.layers, layers));
    out.back().model.layers = layers;
  }
  return out;
}

Changes tensor_parallel_changes(const Model& model, const Workload& work) {
  Changes out;
  for (int tp = work.layout.tp / 2; tp >= 1; --tp) {
    if (work.layout.tp % tp != 0) continue;
    Change change = start(Knob::tensor_parallel, model, work, work.layout.tp, tp);
    change.work.layout.tp = tp;
    if (tp == 1) change.work.layout.sp = false;
    if (can_split(model, change.work.layout) || model.latent_attention()) out.push_back(std::move(change));
  }
  return out;
}

}  // namespace medley::shape

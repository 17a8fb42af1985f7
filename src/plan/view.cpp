#include "plan/view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <medley/error.hpp>

namespace medley::plan {
namespace {

Model prepared(Model m, const Layout& l, const ViewOptions& options) {
  if (options.pad_vocabulary) m.vocab = round_up(m.vocab, Count{128} * l.tp);
  if (options.fuse_projections) m.fused_qkv = m.fused_gate = true;
  if (options.fuse_qkv) m.fused_qkv = true;
  return m;
}

/// nanotron's build_model: blocks go to a stage until their summed cost exceeds its share of the whole, the
/// layer that exceeds it included. The head counts by its product, so with a large vocabulary the last stages
/// may have no layer.
std::vector<Count> counts_by_cost(const Model& m, Count parts) {
  // get_block_compute_costs: projections as of full attention, a gated MLP
  const double h = static_cast<double>(m.hidden);
  const double layer = 4 * h * static_cast<double>(m.heads * m.query_head_dim()) +
                       3 * h * static_cast<double>(std::max<Count>(1, m.ffn));
  const double head = h * static_cast<double>(m.vocab) / layer;
  const double share = (static_cast<double>(m.layers) + head) / static_cast<double>(parts);
  std::vector<Count> counts(static_cast<std::size_t>(parts), 0);
  Count part = 0;
  for (Count i = 1; i <= m.layers; ++i) {
    ++counts[static_cast<std::size_t>(part)];
    if (static_cast<double>(i) > share * static_cast<double>(part + 1) * (1 + 1e-12))
      part = std::min(part + 1, parts - 1);
  }
  return counts;
}

/// Layers of each of `parts` stages in order.
std::vector<Count> counts_of(const Model& m, Count parts, ViewOptions::Uneven uneven) {
  using Uneven = ViewOptions::Uneven;
  if (uneven == Uneven::by_cost) return counts_by_cost(m, parts);
  std::vector<Count> counts(static_cast<std::size_t>(parts), m.layers / parts);
  if (m.layers % parts == 0) return counts;
  if (uneven == Uneven::count_ends && (m.layers + 2) % parts == 0) {
    std::fill(counts.begin(), counts.end(), (m.layers + 2) / parts);
    --counts.front();
    --counts.back();
    return counts;
  }
  for (Count part = 0; part < m.layers % parts; ++part) ++counts[static_cast<std::size_t>(part)];
  return counts;
}

}  // namespace

std::vector<Chunk> chunks_of(const Model& m, const Layout& l, int stage, const ViewOptions& options) {
  const Count parts = Count{l.pp} * l.virtual_stages;
  const std::vector<Count> counts = counts_of(m, parts, options.uneven);
  std::vector<Chunk> chunks;
  for (int v = 0; v < l.virtual_stages; ++v) {
    const Count part = Count{v} * l.pp + stage;
    Chunk chunk;
    for (Count i = 0; i < part; ++i) chunk.first += counts[static_cast<std::size_t>(i)];
    chunk.count = counts[static_cast<std::size_t>(part)];
    chunk.embedding = part == 0;
    chunk.head = part == parts - 1;
    chunks.push_back(chunk);
  }
  return chunks;
}

Model local_model(Model m, const Layout& l, bool whole_experts) {
  const auto cut_by = [](Count& width, const char* what, const char* key, int ranks) {
    if (width % ranks != 0) {
      throw Error(ErrorKind::invalid, fmt::format("layout: {} {} is not divisible by {} {}", what, width, key, ranks));
    }
    width /= ranks;
  };
  const auto cut = [&](Count& width, const char* what) { cut_by(width, what, "tp", l.tp); };
  cut(m.heads, "number of attention heads");
  m.kv_heads = std::max<Count>(1, m.kv_heads / l.tp);  // fewer key-value heads than ranks: each keeps one
  cut(m.ffn, "MLP width");
  if (!whole_experts) cut_by(m.moe_ffn, "expert width", l.etp == 0 ? "tp" : "etp", l.expert_tensor());
  cut(m.shared_ffn, "shared expert width");
  m.vocab = ceil_div(m.vocab, l.tp);
  return m;
}

View::View(const Model& m, const Layout& l, Count r, ViewOptions options)
    : model(prepared(m, l, options)),
      layout(l),
      rank(r),
      at(coordinates(l, r)),
      local(local_model(model, l, options.whole_experts)) {
  e = l.element_bytes();
  const bool decode = l.mode == Mode::decode;
  sequence = decode ? 1 : l.seq / l.cp;
  cached = decode ? ceil_div(l.seq, l.cp) : 0;
  tokens = product({l.micro_batch, sequence}, "tokens");
  sharded_tokens = l.sp ? tokens / l.tp : tokens;
  // Checks overflow with room for every small multiple of an activation, so that those need no check of their
  // own.
  product({tokens, std::max({model.hidden, local.ffn, local.vocab, local.query_width()}), 64}, "activation");
  micro_batches = l.micro_batches();
  dp_group = Count{l.dp} * l.cp;
  expert_dp_group = dp_group * l.tp / (Count{l.expert_tensor()} * l.ep);
  model_group = Count{l.tp} * l.pp;
  chunks = chunks_of(model, l, at.pp, options);
  embedding = embedding_tensors(local);
  head = head_tensors(local);
  const auto layer_of = [&](LayerKind kind) {
    std::vector<Tensor> tensors = layer_tensors(local, kind);
    for (Tensor& t : tensors) {
      if (t.part == Part::expert) t.copies /= l.ep;
    }
    return tensors;
  };
  dense_layer = layer_of({false});
  if (model.moe()) moe_layer = layer_of({true});
  if (model.spans.find('L') != std::string::npos) {
    linear_layer = layer_of({false, Span::linear});
    if (model.moe()) linear_moe_layer = layer_of({true, Span::linear});
  }
}

std::vector<LocalTensor> View::tensors() const {
  std::vector<LocalTensor> all;
  for (int i = 0; i < static_cast<int>(chunks.size()); ++i) {
    const auto some = tensors(i);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<LocalTensor> View::tensors(int index) const {
  const Chunk& chunk = chunks[static_cast<std::size_t>(index)];
  std::vector<LocalTensor> out;
  const auto add = [&](const std::vector<Tensor>& list, Count layer, bool with_tied) {
    for (const Tensor& t : list) {
      if (!t.tied || with_tied) out.push_back({&t, layer, t.elements()});
    }
  };
  if (chunk.embedding) add(embedding, -1, false);
  for (Count i = chunk.first; i < chunk.first + chunk.count; ++i) add(layer(i), i, false);
  // A tied head on a different stage than the embedding is a second copy, kept equal by the embedding group.
  if (chunk.head) add(head, model.layers, layout.pp > 1);
  return out;
}

Count View::stage_rank(int stage) const {
  Coordinates other = at;
  other.pp = (stage + layout.pp) % layout.pp;
  return rank_of(layout, other);
}

Count View::routed_tokens() const {
  const double routed = static_cast<double>(ceil_div(tokens, layout.tp)) * static_cast<double>(model.top_k) *
                        layout.flags.capacity_factor;
  if (routed > 9e18) throw Error(ErrorKind::invalid, "routed tokens pass 2^63: check capacity_factor");
  return static_cast<Count>(std::llround(routed));
}

Count elements(const std::vector<LocalTensor>& tensors, bool expert) {
  Count total = 0;
  for (const LocalTensor& t : tensors) {
    if (t.expert() == expert) total = sum(total, t.elements, "parameters");
  }
  return total;
}

Entry comm(Op op, std::string_view group, Count group_size, Count bytes, DType dtype, Phase phase, std::string module,
           std::string_view why) {
  Entry entry;
  entry.kind = Kind::comm;
  entry.op = op;
  entry.group = group;
  entry.group_size = group_size;
  entry.bytes = bytes;
  entry.dtype = dtype;
  entry.phase = phase;
  entry.module = std::move(module);
  entry.why = why;
  return entry;
}

Entry memory_bound(Count bytes, Phase phase, std::string module) {
  Entry entry;
  entry.kind = Kind::memory;
  entry.bytes = bytes;
  entry.phase = phase;
  entry.module = std::move(module);
  return entry;
}

Entry wait_for(int token, Phase phase) {
  Entry entry;
  entry.kind = Kind::wait;
  entry.token = token;
  entry.phase = phase;
  return entry;
}

Entry async(Entry entry, int token) {
  entry.token = token;
  entry.exposed = false;
  return entry;
}

void add_comm(Schedule& schedule, Schedule::BlockId to, Entry entry) {
  if (entry.group_size > 1 && entry.bytes > 0) schedule.add(to, std::move(entry));
}

}  // namespace medley::plan

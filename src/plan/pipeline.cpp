#include "plan/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <medley/error.hpp>
#include <optional>
#include <tuple>

#include "plan/layer.hpp"

namespace medley::plan {
namespace {

// Megatron's interleaved order: micro-batches pass through each chunk in rounds of p.
Pass interleaved_pass(const Layout& l, Count index, bool forward) {
  const Count round = Count{l.pp} * l.virtual_stages, in_round = index % round;
  Pass pass;
  pass.forward = forward;
  pass.chunk = static_cast<int>(in_round / l.pp);
  if (!forward) pass.chunk = l.virtual_stages - 1 - pass.chunk;
  pass.micro_batch = index / round * l.pp + in_round % l.pp;
  return pass;
}

Count warmup(const Layout& l, int stage, Count passes) {
  if (l.pp == 1) return 0;
  if (l.pipeline == PipelineKind::gpipe) return passes;
  const Count ahead = l.pp - stage - 1;
  const Count count = l.virtual_stages > 1 ? 2 * ahead + Count{l.virtual_stages - 1} * l.pp : ahead;
  return std::min(count, passes);
}

/// The four messages a pass may need, as (operation, stage, activation or gradient).
class Messages {
 public:
  Messages(const View& view, Schedule& schedule, Schedule::BlockId to, const PipelineRules& rules)
      : view_(view), schedule_(schedule), to_(to), rules_(rules), bytes_(boundary_bytes(view)) {}

  bool receives(const Pass& p) const {
    const Chunk& chunk = view_.chunks[static_cast<std::size_t>(p.chunk)];
    return view_.layout.pp > 1 && !(p.forward ? chunk.embedding : chunk.head);
  }
  bool sends(const Pass& p) const {
    const Chunk& chunk = view_.chunks[static_cast<std::size_t>(p.chunk)];
    return view_.layout.pp > 1 && !(p.forward ? chunk.head : chunk.embedding);
  }
  void receive(const Pass& p, int batch) const { message(p, Op::recv, batch); }
  void send(const Pass& p, int batch) const { message(p, Op::send, batch); }

 private:
  // All micro-batches send the same messages: an entry is made once and reused.
  void message(const Pass& p, Op op, int batch) const {
    Schedule::Node node;
    node.micro_batch = p.micro_batch;
    node.chunk = p.chunk;
    std::vector<std::uint32_t>& known = made_[{op, p.forward, batch}];
    if (known.empty()) {
      for (Entry& entry : entries_of(p, op, batch)) {
        known.push_back(static_cast<std::uint32_t>(schedule_.entries().size()));
        schedule_.add(to_, std::move(entry), node);
      }
      return;
    }
    for (const std::uint32_t index : known) schedule_.add_again(to_, index, node);
  }

  std::vector<Entry> entries_of(const Pass& p, Op op, int batch) const {
    const bool sending = op == Op::send;
    const int stage = view_.at.pp + (sending == p.forward ? 1 : -1);
    Entry entry =
        comm(op, "pp", view_.layout.pp, bytes_, view_.layout.dtype, p.forward ? Phase::forward : Phase::backward,
             "pipeline", p.forward ? "activation between pipeline stages" : "gradient between pipeline stages");
    entry.peer = view_.stage_rank(stage);
    entry.batch = batch;
    std::vector<Entry> out;
    if (rules_.shape_exchange) {
      Entry shape = entry;
      shape.bytes = 24;  // three int64
      shape.dtype = DType::i64;
      shape.why = "shape of the tensor that follows (variable_seq_lengths)";
      out.push_back(std::move(shape));
    }
    out.push_back(rules_.overlap ? async(std::move(entry), sending ? token::send : token::receive) : std::move(entry));
    return out;
  }

  mutable std::map<std::tuple<Op, bool, int>, std::vector<std::uint32_t>> made_;
  const View& view_;
  Schedule& schedule_;
  Schedule::BlockId to_;
  PipelineRules rules_;
  Count bytes_;
};

}  // namespace

std::vector<Pass> pass_order(const Layout& l, int stage) {
  const Count m = l.micro_batches(), passes = product({m, l.virtual_stages}, "micro-batches");
  if (passes > (Count{1} << 20)) {
    throw Error(
        ErrorKind::invalid,
        fmt::format("layout: {} micro-batches per step are more than can be planned (2^20); check global-batch", m));
  }
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(2 * passes));
  const Count warm = warmup(l, stage, passes);
  const auto pass = [&](Count i, bool forward) {
    return l.virtual_stages > 1 ? interleaved_pass(l, i, forward) : Pass{forward, i, 0};
  };
  if (l.mode != Mode::train) {
    for (Count i = 0; i < passes; ++i) order.push_back(pass(i, true));
    return order;
  }
  for (Count i = 0; i < warm; ++i) order.push_back(pass(i, true));
  for (Count i = warm; i < passes; ++i) {
    order.push_back(pass(i, true));
    order.push_back(pass(i - warm, false));
  }
  for (Count i = passes - warm; i < passes; ++i) order.push_back(pass(i, false));
  return order;
}

Count boundary_bytes(const View& view) {
  return product({view.sharded_tokens, view.model.hidden, view.e}, "activation");
}

void add_pass(Schedule& schedule, Schedule::BlockId to, Schedule::BlockId body, const Pass& pass) {
  Schedule::Node node;
  node.is_block = true;
  node.index = body;
  node.micro_batch = pass.micro_batch;
  node.chunk = pass.chunk;
  schedule.add(to, node);
}

void write_pipeline(const View& view, Schedule& schedule, Schedule::BlockId to, const PipelineRules& rules,
                    const std::function<Schedule::BlockId(const Pass&)>& body) {
  const std::vector<Pass> order = pass_order(view.layout, view.at.pp);
  const Messages messages(view, schedule, to, rules);
  int batch = 0;  // alternates 1 and 2: only neighbours need different numbers
  std::array<std::optional<std::uint32_t>, 2> waits;
  const auto wait_for_input = [&](bool forward) {
    std::optional<std::uint32_t>& known = waits[forward];
    if (known) return schedule.add_again(to, *known, {});
    known = static_cast<std::uint32_t>(schedule.entries().size());
    schedule.add(to, wait_for(token::receive, forward ? Phase::forward : Phase::backward));
  };
  bool received = false;  // the receive of this pass started with the last send
  if (rules.overlap && !order.empty() && messages.receives(order[0])) {
    messages.receive(order[0], 0);
    received = true;
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Pass& pass = order[i];
    const Pass* next = i + 1 < order.size() ? &order[i + 1] : nullptr;
    if (messages.receives(pass) && !received) messages.receive(pass, 0);
    if (rules.overlap && messages.receives(pass)) wait_for_input(pass.forward);
    received = false;
    if (rules.overlap && next && messages.receives(*next)) {
      messages.receive(*next, 0);
      received = true;
    }
    add_pass(schedule, to, body(pass), pass);
    if (!messages.sends(pass)) continue;
    // Megatron pairs a send with the following receive of the opposite pass; two forward passes in a row are
    // not paired.
    const bool pairs = rules.batched && !rules.overlap && next && messages.receives(*next) &&
                       (next->forward != pass.forward || view.layout.virtual_stages > 1);
    if (pairs) batch = batch == 1 ? 2 : 1;
    messages.send(pass, pairs ? batch : 0);
    if (!pairs) continue;
    messages.receive(*next, batch);
    received = true;
  }
  if (rules.overlap) schedule.add(to, wait_for(token::send, Phase::backward));
}

void add_layers(Schedule& schedule, Schedule::BlockId to, const Chunk& chunk, bool backward, const LayerHooks& hooks) {
  Schedule::Node open;
  open.repeat = 0;
  const auto flush = [&] {
    if (open.repeat > 0) schedule.add(to, open);
    open.repeat = 0;
  };
  const auto place = [&](std::vector<Entry> entries) {
    if (entries.empty()) return;
    flush();
    for (Entry& entry : entries) schedule.add(to, std::move(entry));
  };
  for (Count i = 0; i < chunk.count; ++i) {
    const Count layer = backward ? chunk.first + chunk.count - 1 - i : chunk.first + i;
    if (hooks.before) place(hooks.before(layer));
    const Schedule::BlockId block = hooks.block(layer);
    if (open.repeat > 0 && open.index != block) flush();
    if (open.repeat == 0) {
      open = {};
      open.is_block = true;
      open.index = block;
      open.layer = layer;
      open.layer_step = backward ? -1 : 1;
      open.repeat = 0;
    }
    ++open.repeat;
    if (hooks.after) place(hooks.after(layer));
  }
  flush();
}

}  // namespace medley::plan

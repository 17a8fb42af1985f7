#include "plan/body.hpp"

namespace medley::plan {

Body::Body(const View& view, Schedule& schedule, const TensorRules& rules)
    : view_(view), schedule_(schedule), writer_(view, schedule, rules) {}

Schedule::BlockId Body::layer_block(LayerKind kind, bool forward) {
  const auto key = std::make_pair(kind, forward);
  if (const auto found = layers_.find(key); found != layers_.end()) return found->second;
  // Inner blocks (a ring's step) must precede the block that refers to them, so the layer is written to a
  // block that is created first and then moved behind them.
  const Schedule::BlockId draft = schedule_.add_block();
  if (forward) writer_.forward(draft, kind);
  else writer_.backward(draft, kind);
  const Schedule::BlockId block = schedule_.move_to_end(draft);
  layers_[key] = block;
  return block;
}

Schedule::BlockId Body::block(int chunk, bool forward, int variant, const BodyHooks& hooks) {
  const auto key = std::make_pair(chunk * 2 + (forward ? 1 : 0), variant);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  return made_[key] = make(view_.chunks[static_cast<std::size_t>(chunk)], chunk, forward, hooks);
}

Schedule::BlockId Body::make(const Chunk& chunk, int index, bool forward, const BodyHooks& hooks) {
  for (Count i = chunk.first; i < chunk.first + chunk.count; ++i) layer_block(view_.model.kind(i), forward);
  const Schedule::BlockId to = schedule_.add_block();
  const auto add_all = [&](std::vector<Entry> entries) {
    for (Entry& entry : entries) schedule_.add(to, std::move(entry));
  };
  const auto hooked = [&](Count layer, auto&& write) {
    if (hooks.before) add_all(hooks.before(layer, forward));
    write();
    if (hooks.after) add_all(hooks.after(layer, forward));
  };
  LayerHooks layer_hooks;
  layer_hooks.block = [&](Count layer) { return layer_block(view_.model.kind(layer), forward); };
  if (hooks.before) layer_hooks.before = [&](Count layer) { return hooks.before(layer, forward); };
  if (hooks.after) layer_hooks.after = [&](Count layer) { return hooks.after(layer, forward); };

  if (hooks.at_start) add_all(hooks.at_start(index, forward));
  if (forward && chunk.embedding) hooked(-1, [&] { writer_.embedding_forward(to); });
  if (!forward && chunk.head) hooked(view_.model.layers, [&] { writer_.head_backward(to); });
  add_layers(schedule_, to, chunk, !forward, layer_hooks);
  if (forward && chunk.head) hooked(view_.model.layers, [&] { writer_.head_forward(to); });
  if (!forward && chunk.embedding) hooked(-1, [&] { writer_.embedding_backward(to); });
  if (hooks.at_end) add_all(hooks.at_end(index, forward));
  return to;
}

}  // namespace medley::plan

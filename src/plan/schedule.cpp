#include "plan/schedule.hpp"

#include <utility>

namespace medley::plan {

std::string_view name(Kind kind) noexcept {
  switch (kind) {
    case Kind::gemm: return "gemm";
    case Kind::attention: return "attention";
    case Kind::memory: return "memory";
    case Kind::comm: return "comm";
    case Kind::wait: return "wait";
  }
  return "";
}

std::string_view name(Phase phase) noexcept {
  switch (phase) {
    case Phase::forward: return "forward";
    case Phase::recompute: return "recompute";
    case Phase::backward: return "backward";
    case Phase::grad_sync: return "grad_sync";
    case Phase::optimizer: return "optimizer";
  }
  return "";
}

void Schedule::add(BlockId to, Entry entry, Node node) {
  node.is_block = false;
  node.repeat = 1;
  node.index = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back(std::move(entry));
  blocks_[to].push_back(node);
}

void Schedule::add_again(BlockId to, std::uint32_t index, Node node) {
  node.is_block = false;
  node.repeat = 1;
  node.index = index;
  blocks_[to].push_back(node);
}

Schedule::BlockId Schedule::move_to_end(BlockId id) {
  Block content = std::move(blocks_[id]);
  blocks_[id].clear();
  blocks_.push_back(std::move(content));
  return static_cast<BlockId>(blocks_.size() - 1);
}

void Schedule::walk(const std::function<void(const Entry&, const Place&)>& visit) const { walk(root(), {}, visit); }

void Schedule::walk(const Block& block, Place place,
                    const std::function<void(const Entry&, const Place&)>& visit) const {
  for (const Node& node : block) {
    Place here = place;
    if (node.micro_batch >= 0) here.micro_batch = node.micro_batch;
    if (node.chunk >= 0) here.chunk = node.chunk;
    for (Count i = 0; i < node.repeat; ++i) {
      if (node.layer >= 0) here.layer = node.layer + i * node.layer_step;
      if (node.is_block) walk(blocks_[node.index], here, visit);
      else visit(entries_[node.index], here);
    }
  }
}

void Schedule::tally(const std::function<void(const Entry&, Count)>& visit) const {
  std::vector<Count> times(blocks_.size(), 0);
  std::vector<Count> occurs(entries_.size(), 0);
  times[0] = 1;
  // Blocks are made before the blocks that refer to them, except the root. So from last to first, with the
  // root ahead of all, every block comes after all blocks that refer to it.
  const auto spread = [&](BlockId id) {
    for (const Node& node : blocks_[id]) {
      Count& total = node.is_block ? times[node.index] : occurs[node.index];
      total = sum(total, product({times[id], node.repeat}, "operations"), "operations");
    }
  };
  spread(0);
  for (std::size_t id = blocks_.size(); id-- > 1;) spread(static_cast<BlockId>(id));
  // In order of first issue: depth first, each block once.
  std::vector<bool> seen(blocks_.size(), false);
  const std::function<void(BlockId)> issue = [&](BlockId id) {
    seen[id] = true;
    for (const Node& node : blocks_[id]) {
      if (!node.is_block) {
        if (const Count count = std::exchange(occurs[node.index], -1); count >= 0) visit(entries_[node.index], count);
      } else if (!seen[node.index] && node.repeat > 0) {
        issue(node.index);
      }
    }
  };
  issue(0);
}

}  // namespace medley::plan

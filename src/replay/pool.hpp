// Memory for a replayer's operations, and what one of them holds while it is in flight.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "replay/replay.hpp"

namespace medley::replay {

/// Reused as soon as it is free, as in a caching allocator.
class Replayer::Pool {
 public:
  using Block = std::vector<std::byte>;
  std::shared_ptr<Block> take(std::size_t bytes) {
    std::shared_ptr<Block>* best = nullptr;
    for (auto& block : blocks_) {
      if (block.use_count() == 1 && block->size() >= bytes && (!best || block->size() < (*best)->size())) best = &block;
    }
    if (best) return *best;
    return blocks_.emplace_back(std::make_shared<Block>(bytes));
  }

 private:
  std::vector<std::shared_ptr<Block>> blocks_;
};

struct Replayer::Pending {
  int token = 0;
  Work work;
  std::vector<std::shared_ptr<Pool::Block>> memory;
};

}  // namespace medley::replay

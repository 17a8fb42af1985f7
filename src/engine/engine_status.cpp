// How the engine answers other ranks' queries and reacts to lost ranks.
#include <algorithm>

#include "engine/engine.hpp"

namespace medley::core {
void Engine::show_awaited() {
  int shown = 0;
  for (Operation& operation : pending_) {
    board_.show_awaited(operation);
    if (++shown == StatusBoard::slots) return;
  }
}

void Engine::rank_lost(int world_rank, const std::vector<Backend*>& backends) {
  const std::lock_guard lock(mutex_);
  for (Backend* backend : backends) backend->rank_lost(world_rank);
}

bool Engine::awaits(const CommState& comm, int member) {
  const std::lock_guard lock(mutex_);
  return std::any_of(pending_.begin(), pending_.end(), [&](const Operation& operation) {
    if (operation.comm.get() != &comm) return false;
    const std::vector<int> awaited = operation.awaited();
    return std::find(awaited.begin(), awaited.end(), member) != awaited.end();
  });
}

}  // namespace medley::core

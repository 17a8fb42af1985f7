// What this rank is doing, in a form another rank can read.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/engine.hpp"

namespace medley::core {
namespace {

const char* state_name(const Operation& operation) {
  return operation.state.load(std::memory_order_relaxed) == Operation::State::active ? "running" : "held back";
}

nlohmann::json describe(const Operation& operation) {
  nlohmann::json text{{"op", name(operation.call.op)}, {"sequence", operation.sequence}, {"state", state_name(operation)},
                      {"comm", operation.comm->name}};
  if (operation.lane && !operation.size) text["backend"] = operation.lane->name;
  if (operation.transfer || operation.size) {
    text["awaits"] = operation.awaited();
    for (int member : operation.awaited()) {
      text["awaits_world"].push_back(operation.comm->world_ranks[static_cast<std::size_t>(member)]);
    }
  }
  if (!operation.collective()) text["peer"] = operation.call.root;
  return text;
}

}  // namespace

nlohmann::json Engine::status_of(const CommState& comm) {
  const std::lock_guard lock(mutex_);
  nlohmann::json status{{"rank", comm.rank}, {"world_rank", comm.world_ranks[static_cast<std::size_t>(comm.rank)]}, {"issued", comm.collectives}, {"messages", comm.messages},
                        {"pending", nlohmann::json::array()}, {"elsewhere", nlohmann::json::array()}};
  std::uint64_t completed = comm.collectives;
  for (const Operation* operation : pending_) {
    if (operation->complete()) continue;
    const bool here = operation->comm.get() == &comm;
    if (here && operation->collective()) completed = std::min(completed, operation->sequence - 1);
    nlohmann::json& list = status[here ? "pending" : "elsewhere"];
    if (list.size() < 8) list.push_back(describe(*operation));
  }
  status["completed"] = completed;
  if (comm.failure) status["failure"] = comm.failure->what();
  return status;
}

void Engine::rank_lost(int world_rank, const std::vector<Backend*>& backends) {
  const std::lock_guard lock(mutex_);
  for (Backend* backend : backends) backend->rank_lost(world_rank);
}

bool Engine::awaits(const CommState& comm, int member) {
  const std::lock_guard lock(mutex_);
  return std::any_of(pending_.begin(), pending_.end(), [&](const Operation* operation) {
    if (operation->comm.get() != &comm || operation->complete()) return false;
    const std::vector<int> awaited = operation->awaited();
    return std::find(awaited.begin(), awaited.end(), member) != awaited.end();
  });
}

}  // namespace medley::core

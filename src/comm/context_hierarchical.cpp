// Hierarchical backends made of two, such as shm+mpi or, on CUDA memory, nccl+mpi: those that a context's list names, and those that its
// route table names and whose halves it has.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algorithms/hierarchical.hpp"
#include "comm/context_state.hpp"
#include "device/staged_lane.hpp"
#include "route/pair_name.hpp"

namespace medley::core {

using route::between_of, route::inside_of, route::is_pair;

std::vector<std::string> with_halves(const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& name : wanted) {
    if (!is_pair(name)) add(name);
  }
  for (const std::string& name : wanted) {
    if (is_pair(name)) add(std::string(inside_of(name))), add(std::string(between_of(name)));
  }
  return names;
}

/// Where hosts have several ranks: each backend that can run inside a host, paired with every other between hosts; and on CUDA memory
/// each that moves it, paired with every one that can cross hosts.
std::vector<std::string> ContextState::with_every_pair(std::vector<std::string> wanted) const {
  const std::set<std::string> different(hosts.begin(), hosts.end());
  if (different.size() < 2 || different.size() == hosts.size()) return wanted;
  for (const Ready& inside : backends_) {
    const bool on_device = inside.capabilities.has_memory(Memory::cuda);
    if (!inside.capabilities.has(Trait::inside_host) && !on_device) continue;
    for (const Ready& between : backends_) {
      if (between.capabilities.has(Trait::inside_host)) continue;
      if (!on_device && !between.capabilities.has_memory(Memory::host)) continue;
      std::string pair = fmt::format("{}+{}", inside.backend->name(), between.backend->name());
      if (std::find(wanted.begin(), wanted.end(), pair) == wanted.end()) wanted.push_back(std::move(pair));
    }
  }
  return wanted;
}

void ContextState::make_pairs(const std::vector<std::string>& wanted) {
  std::vector<std::string> pairs;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(pairs), is_pair);
  if (table) {
    std::set<std::string> of_table;
    for (const route::Cell& cell : table->cells()) {
      for (const route::Timing& timing : cell.routes) {
        if (is_pair(timing.route.backend)) of_table.insert(timing.route.backend);
      }
    }
    for (const std::string& pair : of_table) {
      if (std::find(pairs.begin(), pairs.end(), pair) == pairs.end()) pairs.push_back(pair);
    }
  }
  const auto half = [&](std::string_view name) -> algorithms::Half {
    for (const Ready& ready : backends_) {
      if (ready.backend->name() == name) return {ready.backend.get(), ready.capabilities};
    }
    return {};
  };
  for (const std::string& pair : pairs) {
    const algorithms::Half inside = half(inside_of(pair));
    const algorithms::Half between = half(between_of(pair));
    if (!inside.backend || !between.backend) continue;   // explicitly named ones were refused before
    const bool on_device = inside.capabilities.has_memory(Memory::cuda);
    if (!on_device && (!between.capabilities.has_memory(Memory::host) || inside.backend == between.backend)) continue;
    algorithms::DevicePart on_cuda;
    if (on_device) {
      on_cuda.device = &engine->shared_device();
      on_cuda.stage = [engine = engine](std::unique_ptr<Lane> lane, int rank_there, int ranks) -> std::unique_ptr<Lane> {
        return std::make_unique<StagedLane>(std::move(lane), engine->shared_device(), rank_there, ranks);
      };
    }
    auto backend = std::make_unique<algorithms::HierarchicalBackend>(inside, between, hosts, std::move(on_cuda));
    infos.push_back({.name = pair, .version = backend->version(), .available = true, .reason = {}});
    const auto note = static_cast<std::uint8_t>(engine->recorder() ? engine->recorder()->note(NoteKind::backend, pair) : 0);
    const Capabilities capabilities(*backend);
    backends_.push_back({std::move(backend), capabilities, note});   // after the plain ones: used only where a route names it
  }
}

}  // namespace medley::core

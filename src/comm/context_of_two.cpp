// Backends made of two, such as shm+mpi, nccl+mpi or shm|ucx: those that a context's list names, without a list the
// pair of its first backends, and those that its route table names and whose halves it has.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "algorithms/hierarchical.hpp"
#include "algorithms/split.hpp"
#include "comm/context_state.hpp"
#include "device/staged_lane.hpp"
#include "route/pair_name.hpp"

namespace medley::core {

using route::halves_of, route::is_made_of_two, route::is_split;

std::vector<std::string> with_halves(const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const std::string& name : wanted) {
    if (!is_made_of_two(name)) add(name);
  }
  for (const std::string& name : wanted) {
    for (const std::string_view half : halves_of(name)) add(std::string(half));
  }
  return names;
}

/// Whether there are several hosts, and one of them has several ranks: elsewhere no comm uses a pair.
bool ContextState::has_hosts_of_several_ranks() const {
  const std::set<std::string> different(hosts.begin(), hosts.end());
  return different.size() > 1 && different.size() < hosts.size();
}

/// The pair of the backends that host memory takes inside a host and between hosts where nothing else decides.
std::vector<std::string> ContextState::default_pair() const {
  const auto first = [&](bool inside) {
    return std::find_if(backends_.begin(), backends_.end(), [&](const Ready& one) {
      return one.capabilities.has(Trait::inside_host) == inside && one.capabilities.has_memory(Memory::host);
    });
  };
  const auto inside = first(true), between = first(false);
  if (!has_hosts_of_several_ranks() || inside == backends_.end() || between == backends_.end()) return {};
  return {fmt::format("{}+{}", inside->backend->name(), between->backend->name())};
}

/// Where hosts have several ranks: each backend that can run inside a host, paired with every other between hosts; and
/// on CUDA memory each that moves it, paired with every one that can cross hosts.
std::vector<std::string> ContextState::with_every_pair(std::vector<std::string> wanted) const {
  if (!has_hosts_of_several_ranks()) return wanted;
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

/// The names of the list and of the table.
std::vector<std::string> ContextState::names_made_of_two(const std::vector<std::string>& wanted) const {
  std::vector<std::string> names;
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(names), is_made_of_two);
  if (!table) return names;
  std::set<std::string> of_table;
  for (const route::Cell& cell : table->cells()) {
    for (const route::Timing& timing : cell.routes) {
      if (is_made_of_two(timing.route.backend)) of_table.insert(timing.route.backend);
    }
  }
  if (table->step) {
    const std::set<std::string> of_step = table->step->backends();
    std::copy_if(of_step.begin(), of_step.end(), std::inserter(of_table, of_table.end()), is_made_of_two);
  }
  for (const std::string& name : of_table) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

/// Null where the halves do not fit together, for names of the table.
std::unique_ptr<Backend> ContextState::make_of_two(const std::string& name) const {
  const auto half = [&](std::string_view wanted) -> algorithms::Half {
    for (const Ready& ready : backends_) {
      if (ready.backend->name() == wanted) return {ready.backend.get(), ready.capabilities};
    }
    return {};
  };
  const algorithms::Half one = half(halves_of(name)[0]), other = half(halves_of(name)[1]);
  if (!one.backend || !other.backend) return nullptr;  // explicitly named ones were refused before
  const bool split = is_split(name), same = one.backend == other.backend;
  const bool both_on_host = one.capabilities.has_memory(Memory::host) && other.capabilities.has_memory(Memory::host);
  const bool on_device = split ? !both_on_host : one.capabilities.has_memory(Memory::cuda);
  if (on_device ? split && same : same || !both_on_host) return nullptr;
  algorithms::DevicePart on_cuda;
  if (on_device) {
    on_cuda.device = &engine->shared_device();
    on_cuda.stage = [engine = engine](std::unique_ptr<algorithms::FilledLane> lane, int rank_there,
                                      int ranks) -> std::unique_ptr<Lane> {
      return std::make_unique<StagedLane>(std::move(lane), engine->shared_device(), rank_there, ranks);
    };
  }
  if (split) return std::make_unique<algorithms::SplitBackend>(one, other, std::move(on_cuda));
  return std::make_unique<algorithms::HierarchicalBackend>(one, other, hosts, std::move(on_cuda));
}

void ContextState::make_all_of_two(const std::vector<std::string>& wanted) {
  std::vector<Ready> made;
  for (const std::string& name : names_made_of_two(wanted)) {
    auto backend = make_of_two(name);
    if (!backend) continue;
    infos.push_back({.name = name, .version = backend->version(), .available = true, .reason = {}});
    const auto note =
        static_cast<std::uint8_t>(engine->recorder() ? engine->recorder()->note(NoteKind::backend, name) : 0);
    const Capabilities capabilities(*backend);
    made.push_back({std::move(backend), capabilities, note});
  }
  // After the plain ones: of these only a pair is used where no route names it, for the collectives it has (routing.cpp)
  for (Ready& ready : made) backends_.push_back(std::move(ready));
}

}  // namespace medley::core

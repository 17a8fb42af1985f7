// Connects the lanes of a comm: one for each backend that serves its ranks, a second for CUDA memory that a backend
// stages, and one inside the host for messages of exact size.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <medley/sdk/current_error.hpp>
#include <medley/sdk/launcher_cores.hpp>

#include "algorithms/host_lane.hpp"
#include "bootstrap/store.hpp"
#include "comm/context_state.hpp"
#include "device/staged_lane.hpp"
#include "device/stream_lane.hpp"
#include "route/pair_name.hpp"

namespace medley::core {
namespace {

/// A library may throw anything; callers of Medley only see Medley's errors.
std::unique_ptr<Lane> connect_backend(Backend& backend, const CommParams& params) {
  try {
    const UnboundThreadScope inherited;  // threads that the library starts inherit it
    return backend.connect(params);
  } catch (const Error&) {
    throw;
  } catch (...) {
    throw Error(ErrorKind::system,
                fmt::format("making comm {} over {} failed: {}", params.name, backend.name(), current_error().what()),
                {.comm = params.name, .backend = std::string(backend.name())});
  }
}

}  // namespace

CommParams ContextState::params_of(const std::string& name, const std::vector<int>& world_ranks,
                                   const std::string& backend) {
  return {.name = name,
          .rank = static_cast<int>(std::find(world_ranks.begin(), world_ranks.end(), rank) - world_ranks.begin()),
          .size = static_cast<int>(world_ranks.size()),
          .world_ranks = world_ranks,
          .store = std::make_shared<PrefixStore>(store, fmt::format("comm/{}/{}/", name, backend)),
          .deadline = deadline_after(deadline),
          .progress = [engine = engine] { engine->progress(); },
          .gather =
              [this, backend, rounds = std::map<std::string, int>()](
                  const std::string& comm_name, const std::vector<int>& members, const std::string& mine) mutable {
                return gather(fmt::format("lane/{}/{}/{}", comm_name, backend, rounds[comm_name]++),
                              fmt::format("making comm {} over {}", comm_name, backend), members, mine,
                              deadline_after(deadline), nullptr);
              }};
}

std::unique_ptr<LaneState> ContextState::connect_intra_host(CommState& comm) {
  std::vector<int> members, world_ranks;
  for (int member = 0; member < comm.size; ++member) {
    const int other = comm.world_ranks[static_cast<std::size_t>(member)];
    if (hosts[static_cast<std::size_t>(other)] == hosts[static_cast<std::size_t>(rank)])
      members.push_back(member), world_ranks.push_back(other);
  }
  if (members.size() < 2 || members.size() == comm.world_ranks.size()) return nullptr;
  const auto ready = std::find_if(backends_.begin(), backends_.end(), [&](const Ready& one) {
    return one.capabilities.has(Trait::inside_host) && one.capabilities.has_memory(Memory::host) &&
           one.backend->refuses(world_ranks).empty();
  });
  if (ready == backends_.end()) return nullptr;
  auto lane = std::make_unique<LaneState>();
  lane->backend = ready->backend.get();
  lane->comm = &comm;
  lane->name = fmt::format("{} inside hosts", ready->backend->name());
  lane->note = ready->note;
  lane->event_count = ready->backend->event_count();
  const CommParams params = params_of(fmt::format("{}+host{}", comm.name, world_ranks.front()), world_ranks,
                                      std::string(ready->backend->name()));
  auto host_lane = std::make_unique<algorithms::HostLane>(connect_backend(*ready->backend, params), members, comm.size);
  lane->host_lane = host_lane.get();
  auto filled = std::make_unique<algorithms::FilledLane>(std::move(host_lane), ready->capabilities, lane->name,
                                                         comm.rank, comm.size);
  lane->filled = filled.get();
  lane->lane = std::move(filled);
  lane->host = false;  // no rule, row or call chooses it; Engine::route_of_exact() does
  lane->named.reason = RouteReason::fallback;
  return lane;
}

std::unique_ptr<LaneState> ContextState::connect(CommState& comm, const Ready& ready, bool staged) {
  const std::string suffix = staged ? "+cuda" : "";
  const CommParams params = params_of(comm.name + suffix, comm.world_ranks, std::string(ready.backend->name()));
  auto lane = std::make_unique<LaneState>();
  lane->backend = ready.backend.get();
  lane->comm = &comm;
  lane->name = ready.backend->name();
  lane->note = ready.note;
  lane->event_count = staged ? nullptr : ready.backend->event_count();  // a device has no event count
  auto filled = std::make_unique<algorithms::FilledLane>(connect_backend(*ready.backend, params), ready.capabilities,
                                                         lane->name, comm.rank, comm.size);
  lane->filled = filled.get();
  lane->staged = staged;
  lane->in_streams = filled->in_streams();
  lane->launches_in_phases = !staged && ready.capabilities.has_memory(Memory::cuda) && !lane->in_streams;
  lane->connects_lazily = ready.capabilities.has(Trait::connects_lazily);
  lane->inside_host = ready.capabilities.has(Trait::inside_host);
  lane->slow_reductions = ready.capabilities.has(Trait::slow_reductions);
  lane->sends_now = !staged && ready.capabilities.has(Trait::sends_now);
  lane->default_for_host = ready.capabilities.has(Trait::default_for_host);
  lane->default_for_cuda = ready.capabilities.has(Trait::default_for_cuda);
  for (int op = 0; op < op_count; ++op) {
    lane->in_phases[static_cast<std::size_t>(op)] =
        route::is_pair(lane->name) && is_collective(static_cast<Op>(op)) &&
        ready.capabilities.native(static_cast<Op>(op), DType::f32, sum, Memory::host);
  }
  // On stream lanes messages of a pair share a stream, whatever their tags
  lane->messages = MessageOrder(!lane->in_streams);
  lane->host = !staged && ready.capabilities.has_memory(Memory::host);
  lane->cuda = staged || ready.capabilities.has_memory(Memory::cuda);
  if (staged) {
    lane->lane = std::make_unique<StagedLane>(std::move(filled), engine->shared_device(), comm.rank, comm.size);
  } else if (lane->in_streams) {
    lane->lane = std::make_unique<StreamLane>(std::move(filled), engine->shared_device(), comm.rank, comm.size);
  } else {
    lane->lane = std::move(filled);
  }
  return lane;
}

void ContextState::make_lanes(CommState& comm) {
  for (const BackendInfo& info : infos) {
    if (!info.available)
      comm.refusals.emplace_back(info.name,
                                 fmt::format("backend \"{}\" is not available here: {}", info.name, info.reason));
  }
  std::vector<const Ready*> to_stage;
  for (const Ready& ready : backends_) {
    if (std::string why = ready.backend->refuses(comm.world_ranks); !why.empty()) {
      comm.refusals.emplace_back(ready.backend->name(), std::move(why));
      continue;
    }
    comm.lanes.push_back(connect(comm, ready, false));
    if (why_no_cuda_.empty() && !ready.capabilities.has_memory(Memory::cuda)) to_stage.push_back(&ready);
  }
  // After all others, so that a backend that handles CUDA memory natively is preferred.
  for (const Ready* ready : to_stage) comm.lanes.push_back(connect(comm, *ready, true));
  // Last: hosts with one rank have none, and the others' places are the same on all ranks.
  if (auto intra_host = comm.exact ? connect_intra_host(comm) : nullptr) {
    comm.intra_host_lane = intra_host.get();
    comm.lanes.push_back(std::move(intra_host));
  }
  if (comm.lanes.empty()) {
    std::string reasons;
    for (const auto& [refusing, why] : comm.refusals) reasons += (reasons.empty() ? "" : "; ") + why;
    throw Error(
        ErrorKind::unavailable,
        fmt::format("comm {}: no backend can serve it: {}", comm.name, reasons.empty() ? "none is available" : reasons),
        {.comm = comm.name});
  }
  for (std::size_t place = 0; place < comm.lanes.size(); ++place) comm.lanes[place]->place = static_cast<int>(place);
}

}  // namespace medley::core

// Which lane and algorithm an operation takes: by name, by rule, by table, or by the size the ranks agreed on.
#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/current_error.hpp>

#include "algorithms/compressed.hpp"
#include "engine/engine.hpp"

namespace medley::core {
namespace {

std::string available(const CommState& comm) {
  std::string names;
  for (const auto& lane : comm.lanes) {
    if (!lane->staged && !lane->host_lane) names += (names.empty() ? "" : ", ") + lane->name;
  }
  return names.empty() ? "none" : names;
}

std::string why_not_staged(const CommState& comm, const Call& call) {
  if (call.memory != Memory::cuda || comm.why_no_cuda.empty()) return {};
  return ", and it is not staged: " + comm.why_no_cuda;
}

std::string why_not_compressed(const Call& call, const Route& route) {
  return call.memory == Memory::cuda && route.lane->in_streams
             ? algorithms::why_not_compressed_in_streams(call, route.algorithm)
             : algorithms::why_not_compressed(call, route.algorithm);
}

/// What a rule or the table says about compression applies where it can: not to a call that forbids it, to integers by
/// a lossy codec, or to a barrier. A function of the call alone, so equal on all ranks.
[[gnu::noinline]] void take_compression(Call& call, const Route& route) {
  const bool forbidden = call.algorithm == compress::forbidden;
  if (!forbidden && !call.algorithm.empty()) return;
  const bool drop = compress::is_compressed(route.algorithm) && (forbidden || !why_not_compressed(call, route).empty());
  call.algorithm = drop ? std::string_view{} : std::string_view(route.algorithm);
}

/// The call's algorithm if it names one, else the route's.
void take_algorithm(Call& call, const Route& route) {
  if (call.algorithm.empty() && route.algorithm.empty()) [[likely]]
    return;
  if (compress::is_compressed(route.algorithm) || call.algorithm == compress::forbidden) [[unlikely]] {
    take_compression(call, route);
    if (!call.algorithm.empty())
      route.lane->filled->check_algorithm(call, route.lane->staged ? Memory::host : call.memory);
    return;
  }
  const bool measured =
      route.reason == RouteReason::table || route.reason == RouteReason::online || route.reason == RouteReason::trial;
  const bool from_table = call.algorithm.empty() && measured;  // checked with the table
  if (call.algorithm.empty()) call.algorithm = route.algorithm;
  if (call.algorithm.empty() || from_table) return;
  route.lane->filled->check_algorithm(call, route.lane->staged ? Memory::host : call.memory);
}

bool goes_by_agreed_size(const CommState& comm, const Call& call, std::string_view backend) {
  return comm.sizes && (backend.empty() || backend == "auto") && comm.sizes->decides(call);
}

bool may_go_by_agreed_times(const CommState& comm, const Call& call, std::string_view backend, const Route& admitted) {
  return comm.online && (backend.empty() || backend == "auto") && OnlineRoutes::may_decide(call, admitted);
}

/// The size may still be open: every route it could lead to is checked here, on all ranks alike.
[[gnu::noinline]] void check_all_algorithms(const CommState& comm, const Call& call) {
  comm.routing.each_route(call, [&call](const Route& possible) {
    Call tried = call;
    take_algorithm(tried, possible);
  });
}

}  // namespace

/// On a comm with exact sizes: messages inside a host stay there, unless a rule says otherwise.
const Route* Engine::route_of_exact(const CommState& comm, const Call& call) {
  const Route* const found = comm.routing.find(call, comm.size);
  const bool inside =
      comm.intra_host_lane && call.memory == Memory::host && found && found->reason != RouteReason::rule;
  if (call.root == any_source && (inside || comm.routing.splits_messages(call.memory))) {
    throw Error(
        ErrorKind::invalid,
        fmt::format(
            "recv on comm {}: its messages have exact sizes and take several routes, so a receive from any source would have "
            "to look in several libraries; name the source or the backend, or make a comm without exact sizes",
            comm.name),
        {.op = call.op, .comm = comm.name});
  }
  return inside && comm.intra_host_lane->host_lane->reaches(call.root) ? &comm.intra_host_lane->named : found;
}

const Route& Engine::route(CommState& comm, const Call& call, std::string_view backend) const {
  if (backend.empty() || backend == "auto") {
    const bool exact = comm.exact && !is_collective(call.op);
    if (const Route* found = exact ? route_of_exact(comm, call) : comm.routing.find(call, comm.size)) return *found;
    throw Error(ErrorKind::unavailable,
                fmt::format("{} on comm {}: no backend of this comm ({}) moves {} memory{}", name(call.op), comm.name,
                            available(comm), name(call.memory), why_not_staged(comm, call)),
                {.op = call.op, .comm = comm.name});
  }
  for (auto& lane : comm.lanes) {
    if (same_name(lane->name, backend) && lane->moves(call.op, call.memory)) return lane->named;
  }
  if (std::any_of(comm.lanes.begin(), comm.lanes.end(), [&](const auto& lane) { return lane->name == backend; })) {
    throw Error(ErrorKind::unavailable,
                fmt::format("{} on comm {}: backend {} does not move {} memory{}", name(call.op), comm.name, backend,
                            name(call.memory), why_not_staged(comm, call)),
                {.op = call.op, .comm = comm.name, .backend = std::string(backend)});
  }
  std::string why = fmt::format("backend \"{}\" is not one of this context's", backend);
  for (const auto& [refusing, reason] : comm.refusals) {
    if (refusing == backend) why = reason;
  }
  throw Error(ErrorKind::unavailable,
              fmt::format("{} on comm {}: {}; this comm has {}", name(call.op), comm.name, why, available(comm)),
              {.op = call.op, .comm = comm.name, .backend = std::string(backend)});
}

const Route& Engine::admit(CommState& comm, Call& call, std::string_view backend) const {
  if (comm.failure) {
    throw with_context(*comm.failure, comm, call, (is_collective(call.op) ? comm.collectives : comm.messages) + 1, "");
  }
  if (!collecting_.empty()) [[unlikely]]
    refuse_collected(comm, call);
  const Route& chosen = route(comm, call, backend);
  if (!comm.agrees_on_routes) [[likely]] {
    take_algorithm(call, chosen);
  } else if (goes_by_agreed_size(comm, call, backend)) {
    check_all_algorithms(comm, call);
  } else if (!may_go_by_agreed_times(comm, call, backend, chosen)) {  // those take it once they have their route
    take_algorithm(call, chosen);
  }
  if (call.feedback) [[unlikely]]
    algorithms::FeedbackAccess::prepare(call, comm.rank, comm.size);
  return chosen;
}

/// Counts an admitted call, and notes its size where the ranks compare them.
void Engine::count(CommState& comm, const Call& call, std::string_view backend) {
  comm.count(is_collective(call.op));
  if (!comm.message_sizes || is_collective(call.op) || call.root == any_source) [[likely]]
    return;
  if (backend.empty() || backend == "auto") comm.message_sizes->note(call);
}

/// The route of an admitted, counted call. If it is open, sets `open` and returns a placeholder.
const Route& Engine::settle_route(CommState& comm, Call& call, std::string_view backend, const Route& admitted,
                                  OpenRoute& open, OnlineTicket& ticket) {
  const bool by_size = goes_by_agreed_size(comm, call, backend);
  if (!by_size && !may_go_by_agreed_times(comm, call, backend, admitted)) return admitted;
  const std::uint32_t slot = by_size ? OnlineTicket::none : comm.online->slot_of(call);
  if (!by_size && slot == OnlineTicket::none) {
    take_algorithm(call, admitted);
    return admitted;
  }
  LaneState& lane = by_size ? comm.sizes->lane() : comm.online->lane();
  try {
    const Route* chosen = nullptr;
    if (by_size) {
      auto [bytes, query] = comm.sizes->next(call);
      open = std::move(query);
      if (!open) chosen = comm.routing.find_by_size(call, bytes);  // where there are steps they cover all sizes
    } else {
      auto [route, query] = comm.online->next(slot, comm.collectives, ticket);
      open = std::move(query);
      chosen = route;
      note_decisions(comm);
    }
    watch_undelivered(lane);
    if (open) {
      progress_.add_lane(lane);
      return admitted;
    }
    take_algorithm(call, *chosen);
    return *chosen;
  } catch (...) {  // the other ranks have counted it
    const Error full = with_context(current_error(), comm, call, comm.collectives, lane.name);
    fail_locked(comm, full);
    throw full;
  }
}

/// Assigns lane order to the collectives of a comm, in order of issue, as far as routes are known. Returns whether any
/// was.
bool Engine::assign_lane_orders(CommState& comm) {
  bool any = false;
  while (!comm.awaiting_lane_order.empty()) {
    Operation& next = *comm.awaiting_lane_order.front();
    if (next.collected) return seek_agreement(comm) || any;
    if (next.open_route) {
      try {
        if (!next.open_route.answered() || !take_agreed_route(next)) return any;
      } catch (...) {
        finish_with_error(next, current_error());
        return true;
      }
    }
    any = true;
    scheduler_.assign_lane_order(next);
  }
  return any;
}

/// False if it has to wait for more.
bool Engine::take_agreed_route(Operation& operation) {
  CommState& comm = *operation.comm;
  const Route* found = nullptr;
  if (operation.online.takes_part()) {
    OnlineRoutes& online = *comm.online;
    auto [route, query] = online.route_of(operation.online);
    watch_undelivered(online.lane());
    if (query) {
      progress_.add_lane(online.lane());
      operation.open_route = std::move(query);
      return false;
    }
    note_decisions(comm);
    found = route;
  } else {
    found = comm.routing.find_by_size(operation.call, operation.open_route.value());
  }
  const Route& chosen = *found;
  operation.open_route.reset();
  operation.lane = chosen.lane;
  take_algorithm(operation.call, chosen);
  operation.algorithm = operation.call.algorithm;
  operation.call.algorithm = operation.algorithm;
  note_route(operation, chosen);
  board_.show(operation);
  if (operation.awaiting_check) hooks_.ask_checker(comm, operation);
  return true;
}

}  // namespace medley::core

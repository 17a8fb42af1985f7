// Which lane and algorithm an operation takes: by name, by rule, by table, or by the size the ranks agreed on.
#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/current_error.hpp>

#include "engine/engine.hpp"

namespace medley::core {
namespace {

std::string available(const CommState& comm) {
  std::string names;
  for (const auto& lane : comm.lanes) {
    if (!lane->staged) names += (names.empty() ? "" : ", ") + lane->name;
  }
  return names.empty() ? "none" : names;
}

std::string why_not_staged(const CommState& comm, const Call& call) {
  if (call.memory != Memory::cuda || comm.why_no_cuda.empty()) return {};
  return ", and it is not staged: " + comm.why_no_cuda;
}

/// The call's algorithm if it names one, else the route's.
void take_algorithm(Call& call, const Route& route) {
  const bool from_table = call.algorithm.empty() && route.reason == RouteReason::table;   // checked with the table
  if (call.algorithm.empty()) call.algorithm = route.algorithm;
  if (call.algorithm.empty() || from_table) return;
  route.lane->filled->check_algorithm(call, route.lane->staged ? Memory::host : call.memory);
}

bool goes_by_agreed_size(const CommState& comm, const Call& call, std::string_view backend) {
  return (backend.empty() || backend == "auto") && comm.sizes->decides(call);
}

/// The size may still be open: every route it could lead to is checked here, on all ranks alike.
[[gnu::noinline]] void check_all_algorithms(const CommState& comm, const Call& call) {
  comm.routing.each_route(call, [&call](const Route& possible) {
    Call tried = call;
    take_algorithm(tried, possible);
  });
}

}  // namespace

const Route& Engine::route(CommState& comm, const Call& call, std::string_view backend) const {
  if (backend.empty() || backend == "auto") {
    if (const Route* found = comm.routing.find(call, comm.size)) return *found;
    throw Error(ErrorKind::unavailable, fmt::format("{} on comm {}: no backend of this comm ({}) moves {} memory{}",
                                                    name(call.op), comm.name, available(comm), name(call.memory),
                                                    why_not_staged(comm, call)),
                {.op = call.op, .comm = comm.name});
  }
  for (auto& lane : comm.lanes) {
    if (lane->name == backend && lane->moves(call.op, call.memory)) return lane->named;
  }
  if (std::any_of(comm.lanes.begin(), comm.lanes.end(), [&](const auto& lane) { return lane->name == backend; })) {
    throw Error(ErrorKind::unavailable,
                fmt::format("{} on comm {}: backend {} does not move {} memory{}", name(call.op), comm.name, backend,
                            name(call.memory), why_not_staged(comm, call)),
                {.op = call.op, .comm = comm.name, .backend = std::string(backend)});
  }
  std::string why = fmt::format("backend \"{}\" is not available here", backend);
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
  const Route& chosen = route(comm, call, backend);
  if (comm.sizes && goes_by_agreed_size(comm, call, backend)) [[unlikely]] {
    check_all_algorithms(comm, call);
  } else {
    take_algorithm(call, chosen);
  }
  return chosen;
}

/// The route of an admitted, counted call. If it is open, sets `open` and returns a placeholder.
const Route& Engine::settle_route(CommState& comm, Call& call, std::string_view backend, const Route& admitted,
                                  PendingSize& open) {
  if (!goes_by_agreed_size(comm, call, backend)) return admitted;
  try {
    auto [bytes, question] = comm.sizes->next(call);
    watch_undelivered(comm.sizes->lane());
    if (question) {
      progress_.add_lane(comm.sizes->lane());
      open = std::move(question);
      return admitted;
    }
    const Route& chosen = *comm.routing.find_by_size(call, bytes);   // where there are steps they cover all sizes
    take_algorithm(call, chosen);
    return chosen;
  } catch (...) {   // the other ranks have counted it
    const Error full = with_context(current_error(), comm, call, comm.collectives, comm.sizes->lane().name);
    fail_locked(comm, full);
    throw full;
  }
}

/// Assigns lane order to the collectives of a comm, in order of issue, as far as routes are known. Returns whether any was.
bool Engine::assign_lane_orders(CommState& comm) {
  bool any = false;
  while (!comm.awaiting_lane_order.empty()) {
    Operation& next = *comm.awaiting_lane_order.front();
    if (next.size) {
      try {
        if (!next.size.answered()) return any;
        take_agreed_route(next);
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

void Engine::take_agreed_route(Operation& operation) {
  CommState& comm = *operation.comm;
  const Route& chosen = *comm.routing.find_by_size(operation.call, operation.size.bytes());
  operation.size.reset();
  operation.lane = chosen.lane;
  take_algorithm(operation.call, chosen);
  operation.algorithm = operation.call.algorithm;
  operation.call.algorithm = operation.algorithm;
  note_route(operation, chosen);
  board_.show(operation);
  if (operation.awaiting_check) hooks_.ask_checker(comm, operation);
}

}  // namespace medley::core

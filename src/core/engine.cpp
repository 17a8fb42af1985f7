// Issuing: choosing the lane, the inline path, and what an operation must wait for before it starts.
#include "core/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/as_error.hpp"
#include "core/device.hpp"
#include "core/hazards.hpp"
#include "core/pause.hpp"

namespace medley::core {
namespace {

// How often a blocking call polls before it becomes an operation that others could wait for; a peer in the same call
// answers well within this. Without a core for each rank, polling only keeps the peer from running.
constexpr int inline_polls = 200;
// The first of them without a pause, which takes 20 ns or more: a peer that called at the same time answers within 100.
constexpr int eager_polls = 32;

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

/// Makes the operation own what its call points to.
void copy_lists(Operation& operation, int ranks) {
  Call& call = operation.call;
  const std::int64_t** lists[] = {&call.in_counts, &call.in_offsets, &call.out_counts, &call.out_offsets};
  operation.algorithm = call.algorithm;   // the caller's may go before a held operation starts
  call.algorithm = operation.algorithm;
  if (!call.in_counts && !call.out_counts) return;
  const auto n = static_cast<std::size_t>(ranks);
  operation.lists = std::make_shared_for_overwrite<std::int64_t[]>(4 * n);
  for (std::size_t i = 0; i < 4; ++i) {
    if (!*lists[i]) continue;
    std::int64_t* const own = operation.lists.get() + i * n;
    std::copy_n(*lists[i], n, own);
    *lists[i] = own;
  }
}

/// Whether a blocking call may start from the caller's own memory, which lasts until the call returns. One with patience may
/// return before it is complete; lists may be read by a library that cannot give up what it has begun (MPI).
bool may_borrow(const Call& call, const Options& options) {
  return options.patience.count() == 0 && !call.in_counts && !call.out_counts;
}

/// The algorithm is the call's, if it names one, or the route's.
void take_algorithm(Call& call, const Route& route) {
  const bool from_table = call.algorithm.empty() && route.reason == RouteReason::table;   // checked with the table
  if (call.algorithm.empty()) call.algorithm = route.algorithm;
  if (call.algorithm.empty() || from_table) return;
  route.lane->filled->check_algorithm(call, route.lane->staged ? Memory::host : call.memory);
}

bool goes_by_agreed_size(const CommState& comm, const Call& call, std::string_view backend) {
  return (backend.empty() || backend == "auto") && comm.sizes->decides(call);
}

/// The size may still be open: what it could lead to is refused here and now, on all ranks alike.
[[gnu::noinline]] void check_all_algorithms(const CommState& comm, const Call& call) {
  comm.routing.each_route(call, [&call](const Route& possible) {
    Call tried = call;
    take_algorithm(tried, possible);
  });
}

bool same_stream_of_messages(const Call& a, const Call& b) {
  const bool any = a.root < 0 || b.root < 0;
  return a.op == b.op && a.tag == b.tag && (any || a.root == b.root);
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

void Engine::refuse_forked_child() const {
  if (fork_guard_.here()) return;
  throw Error(ErrorKind::invalid,
              "this process was forked from the one that made the context; make a new context here");
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

/// Of a call that is admitted and counted: its route. Where that is open, `open` is set, and the route is a stand-in.
const Route& Engine::settle_route(CommState& comm, Call& call, std::string_view backend, const Route& admitted,
                                  OpenSize& open) {
  if (!goes_by_agreed_size(comm, call, backend)) return admitted;
  try {
    auto [bytes, question] = comm.sizes->next(call);
    look_after_owed(comm.sizes->lane());
    if (question) {
      make_busy(comm.sizes->lane());
      open = std::move(question);
      return admitted;
    }
    const Route& chosen = *comm.routing.find_by_size(call, bytes);   // where there are steps they cover all sizes
    take_algorithm(call, chosen);
    return chosen;
  } catch (...) {   // the others have counted it
    const Error full = with_context(current_error(), comm, call, comm.collectives, comm.sizes->lane().name);
    fail_locked(comm, full);
    throw full;
  }
}

Operation* Engine::issue(const std::shared_ptr<CommState>& shared, Call& call, const Options& options, int& source) {
  refuse_forked_child();   // before the lock, which the parent may have held
  attend();
  if (call.memory == Memory::cuda) return issue_on_device(shared, call, options);
  CommState& comm = *shared;
  Operation* operation = nullptr;
  {
    const Hold hold(*this);
    const Route* route = &admit(comm, call, options.backend);
    comm.count(is_collective(call.op));
    OpenSize open;
    if (comm.sizes) [[unlikely]] route = &settle_route(comm, call, options.backend, *route, open);
    const Route& chosen = *route;
    LaneState& lane = *chosen.lane;
    if (!options.async && !open && quiet() && !comm.checked) {
      // Nothing is pending, so nothing can conflict and the lane is free: no bookkeeping unless it takes long.
      std::uint64_t record = 0;
      OperationRef owner;
      if (!may_borrow(call, options)) [[unlikely]] owner = make_operation(shared, call, options, lane);
      Transfer* transfer = owner ? try_inline(comm, owner->call, owner->lists, chosen, options, source, record)
                                 : try_inline(comm, call, nullptr, chosen, options, source, record);
      if (!transfer) return nullptr;
      if (!owner) owner = make_operation(shared, call, options, lane);
      operation = enlist(std::move(owner), options);
      operation->record = record;
      adopt(*operation, transfer);
      if (is_collective(call.op)) lane.last_collective = operation;
    } else {
      operation = enlist_behind(shared, call, options, chosen, std::move(open));
    }
    operation->retain();
  }
  if (options.async) return operation;
  OperationRef held(operation);
  if (options.patience.count() == 0) {
    wait(*operation, operation->deadline);
  } else if (!wait_until(*operation, deadline_after(options.patience))) {
    return held.release();
  }
  source = operation->source;
  return nullptr;
}

/// Check mode: a collective starts once the comm's referee has seen that all ranks called the same.
void Engine::have_compared(Operation& operation) {
  if (!operation.comm->checked || !operation.collective() || !outside_.ask_referee) return;
  operation.compared = true;
  ++operation.blockers;
  if (!operation.size) outside_.ask_referee(*operation.comm, operation);   // otherwise once its route is known
}

Transfer* Engine::try_inline(CommState& comm, const Call& call, const std::shared_ptr<std::int64_t[]>& lists,
                             const Route& route, const Options& options, int& source, std::uint64_t& number) {
  LaneState& lane = *route.lane;   // on host memory, so never one that stages
  Transfer* transfer = nullptr;
  const std::uint64_t begun = ticks();
  if (comm.status) board_.show_inline(*comm.status, lane.place, call.op, call.root);
  try {
    transfer = lane.filled->start(call);
    number = record(comm, call, route, options, begun);   // while the peers' answers are on their way
    const int polls = lane.waiter && lane.waiter->spins() == 0 ? 1 : inline_polls;
    for (int i = 0; transfer && i < polls; ++i) {
      if (transfer->poll() == Poll::complete) {
        source = transfer->source();
        transfer->release();
        transfer = nullptr;
        break;
      }
      // messages come in beside their transfers, and so do those that a filled-in collective is made of
      if (!is_collective(call.op) || lane.filled->exchanging()) lane.filled->progress();
      if (i >= eager_polls) pause();
    }
  } catch (...) {
    const Error error = current_error();
    board_.hide_inline();
    if (number == 0) number = record(comm, call, route, options, begun);
    note_end(number, true);
    const Error full = with_context(error, comm, call, is_collective(call.op) ? comm.collectives : comm.messages, lane.name);
    if (ends_comm(call, error)) fail_locked(comm, full);
    if (transfer) transfer->abandon(lists);   // after the lane was aborted
    throw full;
  }
  board_.hide_inline();
  if (!transfer) note_end(number, false);
  if (!transfer) look_after_owed(lane);
  return transfer;
}

void Engine::look_after_owed(LaneState& lane) {
  if (!lane.owes() || !make_busy(lane)) return;
  ++undelivered_lanes_;
  if (thread_) thread_->nudge();
}

OperationRef Engine::make_operation(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                                    LaneState& lane) {
  OperationRef operation(new Operation);
  operation->comm = comm;
  operation->lane = &lane;
  operation->call = call;
  copy_lists(*operation, comm->size);
  operation->sequence = operation->collective() ? comm->collectives : comm->messages;
  operation->deadline = deadline_after(options.deadline.count() > 0 ? options.deadline : comm->deadline);
  return operation;
}

/// From here on it is pending, and the engine holds the reference.
Operation* Engine::enlist(OperationRef made, const Options& options) {
  Operation* const operation = made.get();
  operation->accesses = accesses_of(operation->call, operation->comm->size);
  if (operation->call.memory == Memory::cuda) {
    operation->before.ready = device_->record(operation->call.stream);
    operation->call.before = &operation->before;
  }
  pending_.push_back(operation);
  static_cast<void>(made.release());
  board_.show(*operation);
  // Who waits on the host moves it, and calls the thread when leaving earlier.
  if (thread_ && (options.async || operation->call.memory == Memory::cuda)) thread_->nudge();
  return operation;
}

/// Behind what it conflicts with and what comes before it on its lane; starts at once where there is no such thing.
Operation* Engine::enlist_behind(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                                 const Route& chosen, OpenSize open) {
  Operation* operation = enlist(make_operation(comm, call, options, *chosen.lane), options);
  operation->size = std::move(open);
  operation->record = record(*comm, call, chosen, options, ticks());
  if (operation->size) note_route(*operation, {});
  depend_on_earlier(*operation);
  have_compared(*operation);
  if (operation->blockers == 0) start(*operation);
  return operation;
}

void Engine::depend_on_earlier(Operation& operation) {
  LaneState& lane = *operation.lane;
  if (lane.in_streams && operation.collective() && pending_.size() == static_cast<std::size_t>(lane.in_order) + 1) {
    lane.last_collective = &operation;   // all others are before it in its stream
    return;
  }
  CommState& comm = *operation.comm;
  // Behind an operation that may yet go to the same lane none can know its place there. A route in streams is never open.
  const bool placed = !operation.collective() || lane.in_streams || (!operation.size && comm.unplaced.empty());
  for (Operation* earlier : pending_) {
    if (earlier == &operation || earlier->complete() || !earlier->lane) continue;
    // Launched collectives of one lane run in its stream, one after the other.
    if (earlier->launched && earlier->lane == &lane && lane.in_streams && earlier->collective() && operation.collective()) continue;
    bool after_start = false;
    bool after_completion = conflict(earlier->accesses, operation.accesses);
    if (earlier->lane->in_streams && lane.in_streams) {
      after_start = depend_in_streams(*earlier, operation, after_completion);
      after_completion = false;
    }
    if (placed && earlier->lane == &lane && earlier->collective() && operation.collective()) {
      if (earlier != lane.last_collective && !after_completion && !after_start) continue;   // the chain covers it
      after_completion = after_completion || !lane.filled->concurrent_collectives();
      after_start = true;
    } else if (earlier->lane == &lane && !earlier->collective() && !operation.collective()) {
      after_start = after_start || same_stream_of_messages(earlier->call, operation.call);
    }
    if (after_completion || (after_start && !earlier->launched)) {
      (after_completion ? earlier->after_completion : earlier->after_start).push_back(&operation);
    } else if (!earlier->lane->in_streams || !lane.in_streams || !hold_while_connecting(*earlier, operation)) {
      continue;
    }
    operation.retain();   // its comm may fail and the caller drop it before the earlier one lets it go
    ++operation.blockers;
  }
  if (!placed) {
    comm.unplaced.push_back(&operation);
    operation.retain();
    ++operation.blockers;
  } else if (operation.collective()) {
    lane.last_collective = &operation;
  }
}

/// Behind the one before it on its lane.
void Engine::take_place(Operation& operation) {
  LaneState& lane = *operation.lane;
  if (Operation* before = std::exchange(lane.last_collective, &operation)) {
    const bool whole = !lane.filled->concurrent_collectives();
    if (!whole && before->launched) return;
    (whole ? before->after_completion : before->after_start).push_back(&operation);
    operation.retain();
    ++operation.blockers;
  }
}

/// Gives places, in order of issue, as far as routes are known.
void Engine::place_next(CommState& comm) {
  while (!comm.unplaced.empty()) {
    Operation& next = *comm.unplaced.front();
    if (next.size) {
      if (!next.size.answered()) return;
      const Route& chosen = *comm.routing.find_by_size(next.call, next.size.bytes());
      next.size.reset();
      next.lane = chosen.lane;
      take_algorithm(next.call, chosen);
      next.algorithm = next.call.algorithm;
      next.call.algorithm = next.algorithm;
      note_route(next, chosen);
      board_.show(next);
      if (next.compared) outside_.ask_referee(comm, next);
    }
    comm.unplaced.pop_front();
    take_place(next);
    let_go({&next});
  }
}

void Engine::look_for_size(Operation& operation) {
  try {
    if (operation.size.answered()) place_next(*operation.comm);
  } catch (...) {
    finish_with_error(operation, current_error());
  }
}

Operation* Engine::issue_group(const std::shared_ptr<CommState>& comm, std::vector<Call>& calls,
                               const Options& options) {
  refuse_forked_child();
  attend();
  if (calls.front().memory == Memory::cuda) use_device(*comm);
  const Hold hold(*this);
  std::vector<const Route*> routes;
  for (Call& call : calls) {   // all or none
    routes.push_back(&admit(*comm, call, options.backend));
    if (call.memory == Memory::cuda) admit_on_device(*comm, call, *routes.back()->lane);
  }
  auto* group = new Operation;
  group->comm = comm;
  group->call = calls.front();
  group->members = static_cast<int>(calls.size());
  group->sequence = comm->messages + 1;
  group->references = 1 + group->members;   // the caller's, and one for each member
  for (std::size_t i = 0; i < calls.size(); ++i) {
    comm->count(false);
    Operation* operation = enlist(make_operation(comm, calls[i], options, *routes[i]->lane), options);
    operation->group = group;
    operation->record = record(*comm, calls[i], *routes[i], options, ticks());
    group->deadline = operation->deadline;
    depend_on_earlier(*operation);
    if (operation->blockers == 0) start(*operation);
  }
  return group;
}

}  // namespace medley::core

// Issuing: the inline path of blocking calls, and operations that become pending.
#include "engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/current_error.hpp>
#include <medley/sdk/device.hpp>
#include <medley/sdk/pause.hpp>
#include <utility>

#include "engine/hazard_index.hpp"

namespace medley::core {
namespace {

// How often a blocking call polls before it becomes a pending operation; a peer in the same call answers well within
// this. Oversubscribed, polling only keeps the peer from running.
constexpr int inline_polls = 200;
// The first polls go without a pause, which takes 20 ns or more: a peer that called at the same time answers within
// 100.
constexpr int eager_polls = 32;

/// Copies what the call points to into the operation.
void copy_lists(Operation& operation, int ranks) {
  Call& call = operation.call;
  const std::int64_t** lists[] = {&call.in_counts, &call.in_offsets, &call.out_counts, &call.out_offsets};
  if (!call.algorithm.empty()) {
    operation.algorithm = call.algorithm;  // the caller's string may be gone before a held operation starts
    call.algorithm = operation.algorithm;
  }
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

/// Whether a blocking call may use the caller's own lists, which last until the call returns. A call with a time limit
/// may return before completion, and a library that cannot cancel (MPI) may still read the lists.
bool may_borrow(const Call& call, const Options& options) {
  return options.max_wait.count() == 0 && !call.in_counts && !call.out_counts;
}

}  // namespace

void Engine::throw_forked_child() {
  throw Error(ErrorKind::invalid,
              "this process was forked from the one that made the context; call it in the parent, or make a new "
              "context here");
}

Operation* Engine::issue(const std::shared_ptr<CommState>& shared, Call& call, const Options& options, int& source) {
  if (call.memory == Memory::host && !is_collective(call.op)) return issue_message(shared, call, options, source);
  refuse_forked_child();  // before the lock, which the parent may have held
  handle_events();
  if (call.memory == Memory::cuda) return issue_on_device(shared, call, options);
  CommState& comm = *shared;
  Operation* operation = nullptr;
  try {
    const Hold hold(*this);
    const Route* route = &admit(comm, call, options.backend);
    count(comm, call, options.backend);
    OpenRoute open;
    OnlineTicket ticket;
    if (comm.agrees_on_routes) [[unlikely]]
      route = &settle_route(comm, call, options.backend, *route, open, ticket);
    const Route& chosen = *route;
    if (comm.auto_fuse && collects(comm, call, options)) [[unlikely]] {
      operation = collect_behind(shared, call, options, chosen);
    } else if (!options.async && !open && !ticket.is_timed() && idle_locked() && !comm.checked) {
      operation = issue_alone(shared, call, options, chosen, source);
      if (!operation) return nullptr;
    } else {
      operation = enlist_behind(shared, call, options, chosen, std::move(open), ticket);
    }
  } catch (...) {
    if (!options.async) await_abort(comm);  // until then its libraries may write to the caller's memory
    throw;
  }
  return options.async ? operation : wait_for_issued(operation, options, source);
}

/// For a blocking call whose operation is pending.
Operation* Engine::wait_for_issued(Operation* operation, const Options& options, int& source) {
  OperationRef held(operation);
  if (options.max_wait.count() == 0) {
    wait(*operation, operation->deadline);
  } else if (!wait_until(*operation, deadline_after(options.max_wait))) {
    return held.release();
  }
  source = operation->source;
  return nullptr;
}

/// A blocking call while nothing is pending: nothing can conflict and the lane is free, so there is no bookkeeping
/// unless it takes long. Null when it is complete.
Operation* Engine::issue_alone(const std::shared_ptr<CommState>& shared, Call& call, const Options& options,
                               const Route& route, int& source) {
  CommState& comm = *shared;
  LaneState& lane = *route.lane;
  Record* record = nullptr;
  OperationRef owner;
  if (!may_borrow(call, options)) [[unlikely]]
    owner = make_operation(shared, call, options, lane, ticks());
  Transfer* const transfer = owner ? try_inline(comm, owner->call, owner->lists, route, options, source, record)
                                   : try_inline(comm, call, nullptr, route, options, source, record);
  if (!transfer) return nullptr;
  if (!owner) owner = make_operation(shared, call, options, lane, ticks());
  Operation* const operation = enlist(std::move(owner), options);
  operation->record = number_of(record);
  scheduler_.add(*operation);  // nothing is pending, so nothing blocks it
  adopt(*operation, transfer, ticks());
  return operation;
}

/// Check mode: a collective starts once the comm's checker has seen that all ranks called the same.
void Engine::await_check(Operation& operation) {
  if (!operation.comm->checked || !operation.collective() || !hooks_.ask_checker) return;
  operation.awaiting_check = true;
  Scheduler::hold(operation);
  if (!operation.open_route) hooks_.ask_checker(*operation.comm, operation);  // otherwise once its route is known
}

Transfer* Engine::try_inline(CommState& comm, const Call& call, const std::shared_ptr<std::int64_t[]>& lists,
                             const Route& route, const Options& options, int& source, Record*& recorded) {
  LaneState& lane = *route.lane;  // on host memory, so never a staging lane
  Transfer* transfer = nullptr;
  // To start one of a cache line takes as long as to read the clock, so its clock is read once its data is on the way.
  // Not where ranks share cores: starting wakes others there, and this one may lose its core meanwhile.
  const std::int64_t bytes = std::max(call.in_count, call.out_count) * static_cast<std::int64_t>(size_of(call.dtype));
  const bool shares_core = lane.event_count && lane.event_count->spins() == 0;
  const bool brief = lane.inside_host && bytes <= cache_line_bytes && !shares_core;
  std::uint64_t begun = brief ? 0 : ticks();
  bool at_once = false, in_progress = false;
  if (comm.status) board_.show_inline(*comm.status, lane.place, call.op, call.root);
  try {
    transfer = lane.filled->start(call);
    if (brief) begun = ticks();
    at_once = brief && !transfer;
    const std::uint64_t ended = at_once ? begun : 0;
    recorded = record(comm, call, route, options, begun, ended, ended);  // while the peers' answers are in flight
    const int polls = shares_core ? 1 : inline_polls;
    for (int i = 0; transfer && i < polls; ++i) {
      if (transfer->poll() == Poll::complete) {
        check_size(comm, call, *transfer);
        source = sender_of(call, *transfer);
        transfer->release();
        transfer = nullptr;
        break;
      }
      // messages progress with their own transfers, and so do the messages of a filled-in collective
      if (!is_collective(call.op) || lane.filled->exchanging()) {
        in_progress = true;
        lane.filled->progress();
        in_progress = false;
      }
      if (i >= eager_polls) pause();
    }
  } catch (...) {
    const Error error = in_ranks_of_comm(lane, current_error());
    board_.hide_inline();
    if (!recorded) recorded = record(comm, call, route, options, begun ? begun : ticks());
    note_end(recorded, true);
    const Error full =
        with_context(error, comm, call, is_collective(call.op) ? comm.collectives : comm.messages, lane.name);
    lane.broken = lane.broken || in_progress;
    if (in_progress || ends_comm(comm, lane, call, error)) fail_locked(comm, full);
    if (transfer) transfer->abandon(lists);  // after the lane was aborted
    throw full;
  }
  board_.hide_inline();
  if (!transfer && !at_once) note_end(recorded, false);
  if (!transfer && lane.has_undelivered()) watch_undelivered(lane);
  return transfer;
}

/// Keeps progress running on a lane that has something undelivered for its peers, though no operation waits for it.
void Engine::watch_undelivered(LaneState& lane) {
  if (progress_.add_undelivered(lane) && thread_) thread_->nudge();
}

OperationRef Engine::make_operation(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                                    LaneState& lane, std::uint64_t begun) {
  OperationRef operation(new Operation);
  operation->comm = comm;
  operation->lane = &lane;
  operation->call = call;
  copy_lists(*operation, comm->size);
  operation->sequence = operation->collective() ? comm->collectives : comm->messages;
  operation->deadline = deadline_of(options.deadline.count() > 0 ? options.deadline : comm->deadline, begun);
  return operation;
}

/// From here on it is pending, and the engine holds a reference. The caller gets another: it may complete as soon as it
/// starts.
Operation* Engine::enlist(OperationRef made, const Options& options) {
  Operation* const operation = made.get();
  if (operation->fusion) [[unlikely]] {
    find_accesses(*operation->fusion, operation->call, operation->comm->size, operation->accesses);
  } else {
    find_accesses(operation->call, operation->comm->size, operation->accesses);
  }
  if (operation->call.memory == Memory::cuda) {
    operation->dependencies.ready = device_->record(operation->call.stream);
    operation->call.dependencies = &operation->dependencies;
  }
  pending_.push_back(*operation);
  operation->references.store(2, std::memory_order_relaxed);  // relaxed: nobody else has seen it yet
  static_cast<void>(made.release());
  // A caller that waits on the host makes the progress, and wakes the thread if it leaves earlier.
  if (thread_ && (options.async || operation->call.memory == Memory::cuda)) thread_->nudge();
  return operation;
}

/// Queued behind conflicting operations and its lane's earlier collectives; starts at once if there are none.
Operation* Engine::enlist_behind(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                                 const Route& chosen, OpenRoute open, const OnlineTicket& ticket) {
  const std::uint64_t begun = ticks();
  Operation* operation = enlist(make_operation(comm, call, options, *chosen.lane, begun), options);
  operation->open_route = std::move(open);
  operation->online = ticket;
  queue(*operation, chosen, options, begun);
  return operation;
}

void Engine::queue(Operation& operation, const Route& chosen, const Options& options, std::uint64_t begun) {
  CommState& comm = *operation.comm;
  board_.show(operation);
  operation.record = number_of(record(comm, operation.call, chosen, options, begun));
  if (operation.open_route) note_route(operation, {});
  scheduler_.add(operation);
  if (operation.collective() && !comm.awaiting_lane_order.empty()) open_routes_.insert(&comm);
  await_check(operation);
  if (operation.blockers == 0) start(operation);
}

Operation* Engine::issue_group(const std::shared_ptr<CommState>& comm, std::vector<Call>& calls,
                               const Options& options) {
  refuse_forked_child();
  handle_events();
  if (calls.front().memory == Memory::cuda) use_device(*comm);
  OperationRef group(new Operation);
  const Hold hold(*this);
  std::vector<const Route*> routes;
  for (Call& call : calls) {  // all or none
    routes.push_back(&admit(*comm, call, options.backend));
    if (call.memory == Memory::cuda) admit_on_device(*comm, call, *routes.back()->lane);
  }
  group->comm = comm;
  group->call = calls.front();
  group->sequence = comm->messages + 1;
  group->batch.reserve(calls.size());
  group->members = static_cast<int>(calls.size());
  // relaxed: nobody else has seen it yet. The caller's, and one for each member.
  group->references.store(1 + group->members, std::memory_order_relaxed);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      issue_member(*group, calls[i], options, *routes[i]);
    } catch (...) {
      const Error error = with_context(current_error(), *comm, calls[i], comm->messages, routes[i]->lane->name);
      if (!end_early(*group, calls.size() - group->batch.size(), error)) throw;
      break;
    }
  }
  return group.release();
}

/// The last `missing` members of a batch could not be issued. Libraries have those before them and use the caller's
/// memory: the batch waits for them, and ends with this error. False if there are none.
bool Engine::end_early(Operation& group, std::size_t missing, const Error& error) {
  group.members -= static_cast<int>(missing);
  group.references.fetch_sub(static_cast<int>(missing), std::memory_order_relaxed);  // relaxed: the caller's is left
  if (group.batch.empty()) return false;
  if (!group.error) group.error = error;
  if (group.members == 0) finish(group);
  return true;
}

/// Links the operation to its group before it may start.
void Engine::issue_member(Operation& group, const Call& call, const Options& options, const Route& route) {
  CommState& comm = *group.comm;
  count(comm, call, options.backend);
  const std::uint64_t begun = ticks();
  Operation* const operation = enlist(make_operation(group.comm, call, options, *route.lane, begun), options);
  operation->group = &group;
  group.batch.push_back(operation);
  group.deadline = operation->deadline;
  board_.show(*operation);
  operation->record = number_of(record(comm, call, route, options, begun));
  scheduler_.add(*operation);
  if (operation->blockers == 0) start(*operation);
}

}  // namespace medley::core

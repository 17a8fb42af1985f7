// Failing comms: errors with their context, the abort of lanes, and what the comm's operations end with.
#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/current_error.hpp>
#include <utility>

#include "algorithms/host_lane.hpp"
#include "engine/engine.hpp"
#include "engine/message_sizes.hpp"

namespace medley::core {

Error with_context(const Error& error, const CommState& comm, const Call& call, std::uint64_t sequence,
                   std::string_view backend) {
  ErrorContext context = error.context();
  if (context.op) return error;  // it already says where it happened
  context.op = call.op;
  context.comm = comm.name;
  context.sequence = sequence;
  context.backend = std::string(backend);
  std::string where = fmt::format("{} #{} on comm {}", name(call.op), sequence, comm.name);
  if (!backend.empty()) where += fmt::format(" over {}", backend);
  return Error(error.kind(), where + ": " + error.what(), context);
}

Error with_context(const Error& error, const Operation& operation) {
  return with_context(error, *operation.comm, operation.call, operation.sequence,
                      operation.lane && !operation.open_route ? operation.lane->name : "");
}

bool ends_comm(const CommState& comm, const LaneState& lane, const Call& call, const Error& error) {
  if (is_collective(call.op)) return true;
  const bool of_this_call = error.kind() == ErrorKind::invalid || error.kind() == ErrorKind::unavailable ||
                            (error.kind() == ErrorKind::mismatch && !comm.exact);
  if (!of_this_call) return true;
  try {
    if (lane.lane) lane.lane->check();
    return false;
  } catch (...) {  // a peer gave up the comm, and this is its error
    return true;
  }
}

Error in_ranks_of_comm(const LaneState& lane, const Error& error) {
  return lane.host_lane ? lane.host_lane->in_ranks_of_comm(error) : error;
}

void throw_if_other_size(const CommState& comm, const Call& call, const Transfer& transfer) {
  const std::int64_t came = transfer.received();
  const std::int64_t posted = call.out_count * static_cast<std::int64_t>(size_of(call.dtype));
  if (came < 0 || came == posted) return;
  const int sender = sender_of(call, transfer);
  throw Error(ErrorKind::mismatch,
              fmt::format("rank {} sent {} bytes with tag {} but rank {} posted a receive of {} bytes; {}", sender,
                          came, call.tag, comm.rank, posted, exact_sizes_rule),
              {.ranks = {sender, comm.rank}});
}

void Engine::on_lane_error(LaneState& lane, const Error& error) {
  ErrorContext context = error.context();
  context.comm = lane.comm->name;
  context.backend = lane.name;
  fail_locked(
      *lane.comm,
      Error(error.kind(), fmt::format("{} on comm {} failed: {}", lane.name, lane.comm->name, error.what()), context));
}

void Engine::check(CommState& comm) {
  handle_events();
  const std::lock_guard lock(mutex_);
  if (comm.failure) throw *comm.failure;
  try {
    for (auto& lane : comm.lanes) lane->lane->check();
  } catch (...) {
    throw current_error();
  }
}

void Engine::fail(CommState& comm, const Error& why) {
  refuse_forked_child();
  {
    const Hold hold(*this);
    fail_locked(comm, why);
  }
  await_abort(comm);
}

void Engine::await_abort(CommState& comm) {
  {
    const Hold hold(*this);
    if (!comm.aborting) return;
  }
  progress_until([&comm] { return !comm.aborting; });
}

void Engine::fail_from_peer(CommState& comm, const Error& why) {
  const Hold hold(*this);
  // The peer may have done its part of an operation before it gave up the comm: what has arrived completes.
  if (!comm.failure) progress_locked(Progress::Extent::all);
  fail_locked(comm, why, false);
}

/// The operations of the comm fail now. They complete only when the lanes have finished their abort: until then a
/// library may write to their memory.
void Engine::fail_locked(CommState& comm, const Error& why, bool announce) {
  if (comm.failure) return;
  if (announce && hooks_.announce_failure) hooks_.announce_failure(comm, why);
  // Later operations put their own context in front of the cause, so the first operation's context is dropped.
  ErrorContext context = why.context();
  context.op.reset();
  comm.failure = Error(why.kind(), std::string("the comm failed earlier: ") + why.what(), context);
  std::vector<Operation*> failing;
  for (Operation& operation : pending_) {
    if (operation.comm.get() != &comm) continue;
    operation.error = with_context(why, operation);
    progress_.remove(operation);
    failing.push_back(&operation);
  }
  scheduler_.withdraw(failing, pending_);
  for (auto& lane : comm.lanes) {
    if (lane->lane) lane->lane->abort(why);
    lane->value_exchange.drop();
  }
  comm.aborting = true;
  ending_ = true;
  aborting_.push_back(&comm);
  finish_aborts();
}

/// Completes the operations of comms whose lanes have finished their abort. Returns whether there were any.
bool Engine::finish_aborts() {
  bool any = false;
  for (std::size_t i = 0; i < aborting_.size();) {
    CommState& comm = *aborting_[i];
    bool over = true;
    for (auto& lane : comm.lanes) over = (!lane->lane || lane->lane->poll_abort()) && over;
    if (!over) {
      ++i;
      continue;
    }
    any = true;
    comm.aborting = false;
    aborting_.erase(aborting_.begin() + static_cast<std::ptrdiff_t>(i));
    end_operations_of(comm);
  }
  return any;
}

void Engine::end_operations_of(CommState& comm) {
  std::vector<OperationRef> failing;
  for (Operation& operation : pending_) {
    if (operation.comm.get() != &comm) continue;
    operation.retain();
    failing.emplace_back(&operation);
  }
  for (const OperationRef& operation : failing) {  // completing one may complete others
    if (!operation->complete()) settle(*operation);
  }
  for (Operation* unordered : std::exchange(comm.awaiting_lane_order, {})) unordered->release();
}

}  // namespace medley::core

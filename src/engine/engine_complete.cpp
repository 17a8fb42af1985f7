// Starting, completing and failing operations and comms.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <medley/sdk/current_error.hpp>
#include <medley/sdk/device.hpp>
#include <thread>
#include <utility>

#include "engine/engine.hpp"
#include "fuse/packed_transfer.hpp"
#include "fuse/series_transfer.hpp"

namespace medley::core {
namespace {

using namespace std::chrono_literals;

constexpr auto longest_close = 1s;   // to deliver exchanged sizes, when a context is destroyed

void nap() {
  may_block("its nap");
  std::this_thread::sleep_for(Backoff::short_nap);
}

}  // namespace

Error with_context(const Error& error, const CommState& comm, const Call& call, std::uint64_t sequence,
                   std::string_view backend) {
  ErrorContext context = error.context();
  if (context.op) return error;   // it already says where it happened
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

bool ends_comm(const CommState& comm, const Call& call, const Error& error) {
  return is_collective(call.op) || error.kind() == ErrorKind::rank_lost || (comm.exact && error.kind() == ErrorKind::mismatch);
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
              fmt::format("rank {} sent {} bytes with tag {} but rank {} posted a receive of {} bytes; this comm was declared to have "
                          "messages of exact size", sender, came, call.tag, comm.rank, posted),
              {.ranks = {sender, comm.rank}});
}

Transfer* Engine::start_transfer(Operation& operation) {
  Lane& lane = *operation.lane->lane;
  if (!operation.fusion || operation.call.list) [[likely]] return lane.start(operation.call);
  const CommState& comm = *operation.comm;
  if (!operation.fusion->is_series()) return fuse::start_packed(lane, operation.call, operation.fusion, comm.rank, comm.size);
  return fuse::start_series(lane, operation.call, operation.fusion, comm.size, Scheduler::most_started(*operation.lane));
}

void Engine::start(Operation& operation) {
  if (operation.comm->failure) return finish_with_error(operation, *operation.comm->failure);
  Transfer* transfer = nullptr;
  const std::vector<Transfer*> before = running_before(operation);
  operation.dependencies.transfers = before;
  if (operation.online.is_timed()) [[unlikely]] operation.timed_from = ticks();
  try {
    transfer = start_transfer(operation);
  } catch (...) {
    operation.dependencies.transfers = {};
    return finish_with_error(operation, current_error());
  }
  operation.dependencies.transfers = {};
  if (!transfer) return settle(operation);   // complete at once
  adopt(operation, transfer, ticks());
}

void Engine::allow_start(CommState& comm, std::uint64_t sequence) {
  const Hold hold(*this);
  for (Operation& operation : pending_) {
    if (operation.comm.get() != &comm || operation.sequence != sequence || !operation.awaiting_check) continue;
    operation.awaiting_check = false;
    return scheduler_.release(operation);
  }
}

void Engine::adopt(Operation& operation, Transfer* transfer, std::uint64_t started) {
  operation.transfer = transfer;
  note_start(operation.record, started);
  operation.state.store(Operation::State::active, std::memory_order_relaxed);   // relaxed: read under the lock; only `complete` is not
  board_.show(operation);
  ++operation.lane->active;
  progress_.add(operation);
  look_for_launch(operation);
}

/// Returns the transfer to its library, and completes the operation.
void Engine::settle(Operation& operation) {
  LaneState& lane = *operation.lane;
  if (operation.transfer) {
    operation.source.store(sender_of(operation.call, *operation.transfer),
                           std::memory_order_relaxed);  // relaxed: as Operation::source says
    if (lane.in_streams && !operation.error) note_device_times(operation.record, operation.transfer->device_times());
    progress_.remove(operation);
    Transfer* const transfer = std::exchange(operation.transfer, nullptr);
    if (operation.error) {
      transfer->abandon(operation.fusion ? std::shared_ptr<const void>(operation.fusion) : operation.lists);
    } else {
      transfer->release();
    }
    --lane.active;
  }
  operation.open_route.reset();
  operation.launched = true;
  if (operation.dependencies.ready) device_->give_back(std::exchange(operation.dependencies.ready, nullptr));
  const OperationRef held(&operation);   // the engine's reference
  pending_.erase(operation);
  if (std::exchange(operation.awaiting_check, false)) operation.release();   // nobody else will release that reference
  complete(operation);
}

void Engine::finish(Operation& operation) {
  if (!operation.callbacks.empty()) {
    std::move(operation.callbacks.begin(), operation.callbacks.end(), std::back_inserter(due_callbacks_));
    operation.callbacks.clear();
  }
  if (!operation.batch.empty()) {
    for (Operation* member : std::exchange(operation.batch, {})) member->release();
  }
  board_.hide(operation);
  some_complete_ = true;
  operation.state.store(Operation::State::complete, std::memory_order_release);   // pairs with Operation::complete()
}

void Engine::leave_with_completions() {
  some_complete_ = false;
  for (EventCount* asleep : sleepers_) asleep->wake_own();
  if (due_callbacks_.empty()) return mutex_.unlock();
  const auto due = std::exchange(due_callbacks_, {});
  mutex_.unlock();
  for (const auto& callback : due) callback();
}

bool Engine::call_back(Operation& operation, std::function<void()>& callback) {
  refuse_forked_child();
  const std::lock_guard lock(mutex_);
  if (operation.complete()) return false;
  operation.callbacks.push_back(std::move(callback));
  return true;
}

void Engine::complete(Operation& operation) {
  note_end(operation.record, operation.error.has_value());
  if (operation.online.is_timed() && operation.timed_from && !operation.error) [[unlikely]] {
    operation.comm->online->note(operation.online, ticks() - operation.timed_from);
  }
  finish(operation);
  scheduler_.finished(operation);
  if (!operation.tensors.empty()) [[unlikely]] finish_tensors(operation);
  if (operation.comm->auto_fuse && operation.comm->auto_fuse->agreement == &operation) [[unlikely]] take_agreement(operation);
  if (Operation* group = std::exchange(operation.group, nullptr)) {
    if (operation.error && !group->error) group->error = operation.error;
    if (operation.source >= 0) group->source = operation.source.load();
    if (--group->members == 0) finish(*group);
    group->release();
  }
}

void Engine::finish_with_error(Operation& operation, const Error& error) {
  const Error full = with_context(operation.lane ? in_ranks_of_comm(*operation.lane, error) : error, operation);
  // This aborts the lanes before it settles the operation: until then a library may use the operation's memory.
  if (ends_comm(*operation.comm, operation.call, error) && !operation.comm->failure) return fail_locked(*operation.comm, full);
  if (operation.comm->aborting && operation.transfer) return;   // its comm failed meanwhile: it completes with the abort
  if (!operation.error) {
    operation.error = full;
    scheduler_.withdraw({&operation}, pending_);
  }
  settle(operation);
}

void Engine::on_lane_error(LaneState& lane, const Error& error) {
  ErrorContext context = error.context();
  context.comm = lane.comm->name;
  context.backend = lane.name;
  fail_locked(*lane.comm, Error(error.kind(), fmt::format("{} on comm {} failed: {}", lane.name, lane.comm->name, error.what()), context));
}

bool Engine::progress_locked(Progress::Extent extent) {
  board_.note_poll();
  bool moved = progress_.run(extent);
  scheduler_.look_for_late_launches();
  for (auto at = open_routes_.begin(); at != open_routes_.end();) {
    CommState& comm = **at;
    moved = assign_lane_orders(comm) || moved;
    at = comm.awaiting_lane_order.empty() ? open_routes_.erase(at) : std::next(at);
  }
  if (!aborting_.empty()) moved = finish_aborts() || moved;
  if (!closing_.empty()) reclaim_closed();
  ending_ = !aborting_.empty() || !closing_.empty();
  return moved;
}

/// Without the lock: makes progress until the condition holds, which is evaluated under the lock.
template <class Condition>
void Engine::progress_until(Condition condition) {
  for (;; nap()) {
    const Hold hold(*this);
    progress_locked();
    if (condition()) return;
  }
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

/// Returns when the lanes of the comm no longer use any memory, if it has failed.
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

/// The operations of the comm fail now. They complete only when the lanes have finished their abort: until then a library may
/// write to their memory.
void Engine::fail_locked(CommState& comm, const Error& why, bool tell) {
  if (comm.failure) return;
  if (tell && hooks_.tell_failure) hooks_.tell_failure(comm, why);
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
  for (const OperationRef& operation : failing) {   // completing one may complete others
    if (!operation->complete()) settle(*operation);
  }
  for (Operation* unordered : std::exchange(comm.awaiting_lane_order, {})) unordered->release();
}

void Engine::close(CommState& comm) {
  finish_in_streams(comm);
  {
    const Hold hold(*this);
    if (comm.lanes.empty()) return;
    const bool pending = std::any_of(pending_.begin(), pending_.end(), [&](const Operation& operation) { return operation.comm.get() == &comm; });
    if (pending) fail_locked(comm, Error(ErrorKind::aborted, "its context was destroyed before the operation was complete"));
    comm.failure = Error(ErrorKind::invalid, "its context no longer exists", {});
  }
  const Deadline limit = std::chrono::steady_clock::now() + longest_close;
  progress_until([&] { return may_destroy_lanes(comm, std::chrono::steady_clock::now() >= limit); });
  const Hold hold(*this);
  destroy_lanes(comm);
}

void Engine::reclaim(CommState* comm) noexcept {
  std::unique_ptr<CommState> gone(comm);
  if (!fork_guard_.here()) return static_cast<void>(gone.release());   // the libraries belong to the parent
  const bool locked_here = mutex_.held_here();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!locked_here) lock.lock();
  closing_.push_back(std::move(gone));
  ending_ = true;
  if (locked_here) return;
  reclaim_closed();
  ending_ = !aborting_.empty() || !closing_.empty();
  if (!closing_.empty() && thread_) thread_->nudge();
}

void Engine::reclaim_all() noexcept {
  const Deadline limit = std::chrono::steady_clock::now() + longest_close;
  progress_until([&] {
    reclaim_closed(std::chrono::steady_clock::now() >= limit);
    return closing_.empty();
  });
}

void Engine::reclaim_closed(bool hurry) noexcept {
  const auto ready = [&](const std::unique_ptr<CommState>& comm) { return may_destroy_lanes(*comm, hurry); };
  for (auto at = closing_.begin(); (at = std::find_if(closing_.begin(), closing_.end(), ready)) != closing_.end();) {
    const std::unique_ptr<CommState> gone = std::move(*at);
    closing_.erase(at);
    destroy_lanes(*gone);
  }
}

/// Whether its lanes have delivered everything to their peers, so that destroying them does not wait. Each lane bounds the time
/// of its abort and its close. Sizes that peers have not received are dropped only when `hurry` is set.
bool Engine::may_destroy_lanes(CommState& comm, bool hurry) noexcept {
  bool ready = !comm.aborting;
  for (auto& lane : comm.lanes) ready = (hurry || lane->value_exchange.empty()) && (!lane->lane || lane->lane->poll_close()) && ready;
  return ready;
}

void Engine::destroy_lanes(CommState& comm) noexcept {
  std::erase(aborting_, &comm);
  open_routes_.erase(&comm);
  progress_.remove_lanes(comm);
  comm.last_named = nullptr;
  comm.lanes.clear();
  order_checked_.erase(comm.name);
}

}  // namespace medley::core

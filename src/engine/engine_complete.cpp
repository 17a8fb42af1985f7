// Starting and completing operations, and making progress on all that are pending.
#include <algorithm>
#include <functional>
#include <iterator>
#include <medley/sdk/current_error.hpp>
#include <medley/sdk/device.hpp>
#include <medley/sdk/may_block.hpp>
#include <thread>
#include <utility>

#include "engine/engine.hpp"
#include "fuse/packed_transfer.hpp"
#include "fuse/series_transfer.hpp"

namespace medley::core {
namespace {

void nap() {
  may_block("its nap");
  std::this_thread::sleep_for(Backoff::short_nap);
}

}  // namespace

Transfer* Engine::start_transfer(Operation& operation) {
  Lane& lane = *operation.lane->lane;
  if (!operation.fusion || operation.call.list) [[likely]]
    return lane.start(operation.call);
  const CommState& comm = *operation.comm;
  if (!operation.fusion->is_series())
    return fuse::start_packed(lane, operation.call, operation.fusion, comm.rank, comm.size);
  return fuse::start_series(lane, operation.call, operation.fusion, comm.size,
                            Scheduler::most_started(*operation.lane));
}

void Engine::start(Operation& operation) {
  if (operation.comm->failure) return finish_with_error(operation, *operation.comm->failure);
  Transfer* transfer = nullptr;
  const std::vector<Transfer*> before = running_before(operation);
  operation.dependencies.transfers = before;
  if (operation.online.is_timed()) [[unlikely]]
    operation.timed_from = ticks();
  try {
    transfer = start_transfer(operation);
  } catch (...) {
    operation.dependencies.transfers = {};
    return finish_with_error(operation, current_error());
  }
  operation.dependencies.transfers = {};
  if (!transfer) return settle(operation);  // complete at once
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
  // Relaxed: read under the lock; only `complete` is not
  operation.state.store(Operation::State::active, std::memory_order_relaxed);
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
  if (operation.dependencies.ready) device_->release_event(std::exchange(operation.dependencies.ready, nullptr));
  const OperationRef held(&operation);  // the engine's reference
  pending_.erase(operation);
  if (std::exchange(operation.awaiting_check, false)) operation.release();  // nobody else will release that reference
  complete(operation);
}

void Engine::finish(Operation& operation) {
  if (!operation.callbacks.empty()) {
    std::move(operation.callbacks.begin(), operation.callbacks.end(), std::back_inserter(due_callbacks_));
    operation.callbacks.clear();
  }
  if (operation.awaited_elsewhere) [[unlikely]]
    note_batch_awaited_elsewhere(operation);
  if (!operation.batch.empty()) {
    for (Operation* member : std::exchange(operation.batch, {})) member->release();
  }
  board_.hide(operation);
  some_complete_ = true;
  operation.state.store(Operation::State::complete, std::memory_order_release);  // pairs with Operation::complete()
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
  if (!operation.tensors.empty()) [[unlikely]]
    finish_tensors(operation);
  if (operation.comm->auto_fuse && operation.comm->auto_fuse->agreement == &operation) [[unlikely]]
    take_agreement(operation);
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
  if (!operation.comm->failure &&
      (!operation.lane || ends_comm(*operation.comm, *operation.lane, operation.call, error)))
    return fail_locked(*operation.comm, full);
  // Its comm failed meanwhile: it completes with the abort
  if (operation.comm->aborting && operation.transfer) return;
  if (!operation.error) {
    operation.error = full;
    scheduler_.withdraw({&operation}, pending_);
  }
  settle(operation);
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
void Engine::progress_until(const std::function<bool()>& condition) {
  for (;; nap()) {
    const Hold hold(*this);
    progress_locked();
    if (condition()) return;
  }
}

}  // namespace medley::core

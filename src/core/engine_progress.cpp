// Progress, completion and failure.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/as_error.hpp"
#include "core/engine.hpp"

namespace medley::core {

Error with_context(const Error& error, const CommState& comm, const Call& call, std::uint64_t sequence,
                   std::string_view backend) {
  ErrorContext context = error.context();
  if (context.op) return error;   // it says already where it happened
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
                      operation.lane && !operation.size ? operation.lane->name : "");
}

bool ends_comm(const Call& call, const Error& error) {
  return (call.op != Op::send && call.op != Op::recv) || error.kind() == ErrorKind::rank_lost;
}

void Engine::start(Operation& operation) {
  LaneState& lane = *operation.lane;
  if (operation.comm->failure) return finish_with_error(operation, *operation.comm->failure);
  Transfer* transfer = nullptr;
  const std::vector<Transfer*> before = running_before(operation);
  operation.before.transfers = before;
  try {
    transfer = lane.lane->start(operation.call);
  } catch (...) {
    operation.before.transfers = {};
    return finish_with_error(operation, current_error());
  }
  operation.before.transfers = {};
  if (transfer) {
    adopt(operation, transfer);
  } else {
    settle(operation);   // complete at once; taken off the list by the next progress
  }
  if (operation.launched) let_go(std::exchange(operation.after_start, {}));
}

void Engine::let_start(CommState& comm, std::uint64_t sequence) {
  const Hold hold(*this);
  for (Operation* operation : pending_) {
    if (operation->comm.get() != &comm || operation->sequence != sequence || !operation->compared) continue;
    operation->compared = false;
    operation->retain();
    return let_go({operation});
  }
}

void Engine::let_go(const std::vector<Operation*>& waiting) {
  for (Operation* next : waiting) {
    if (--next->blockers == 0 && !next->complete()) {
      ready_.push_back(next);
    } else {
      next->release();
    }
  }
  if (starting_) return;   // the loop below is already running further up the stack: a chain may be thousands long
  struct Starting {
    explicit Starting(bool& flag) : flag_(flag) { flag_ = true; }
    ~Starting() { flag_ = false; }
    bool& flag_;
  } const starting(starting_);
  while (!ready_.empty()) {
    const OperationRef next(ready_.front());
    ready_.pop_front();
    if (!next->complete()) start(*next);
  }
}

void Engine::adopt(Operation& operation, Transfer* transfer) {
  operation.transfer = transfer;
  note_launch(operation);
  note_start(operation.record);
  operation.state.store(Operation::State::active, std::memory_order_relaxed);
  board_.show(operation);
  ++operation.lane->active;
  make_busy(*operation.lane);
}

/// Whether it was not before.
bool Engine::make_busy(LaneState& lane) {
  if (std::find(busy_lanes_.begin(), busy_lanes_.end(), &lane) != busy_lanes_.end()) return false;
  busy_lanes_.push_back(&lane);
  return true;
}

void Engine::settle(Operation& operation) {
  LaneState& lane = *operation.lane;
  if (operation.transfer) {
    operation.source = operation.transfer->source();
    if (lane.in_streams && !operation.error) note_device_times(operation.record, operation.transfer->device_times());
    Transfer* const transfer = std::exchange(operation.transfer, nullptr);
    if (operation.error) {
      transfer->abandon(operation.lists);
    } else {
      transfer->release();
    }
    --lane.active;
    if (operation.launched && lane.in_streams && operation.collective()) --lane.in_order;
  }
  operation.size.reset();
  operation.launched = true;
  drop_device_state(operation);
  if (lane.last_collective == &operation) lane.last_collective = nullptr;
  complete(operation);
}

void Engine::finish(Operation& operation) {
  std::move(operation.callbacks.begin(), operation.callbacks.end(), std::back_inserter(to_tell_));
  operation.callbacks.clear();
  board_.hide(operation);
  operation.state.store(Operation::State::complete, std::memory_order_release);
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
  finish(operation);
  let_go(std::exchange(operation.after_completion, {}));
  let_go(std::exchange(operation.after_start, {}));
  let_go(std::exchange(operation.after_connecting, {}));
  if (Operation* group = std::exchange(operation.group, nullptr)) {
    if (operation.error && !group->error) group->error = operation.error;
    if (operation.source >= 0) group->source = operation.source.load();
    if (--group->members == 0) finish(*group);
    group->release();
  }
}

void Engine::finish_with_error(Operation& operation, const Error& error) {
  const Error full = with_context(error, operation);
  // This aborts the lanes before it settles the operation: until then a library may use the operation's memory.
  if (ends_comm(operation.call, error) && !operation.comm->failure) return fail_locked(*operation.comm, full);
  operation.error = full;
  settle(operation);
}

/// What a lane throws outside of an operation fails its comm.
void Engine::progress_lane(LaneState& lane) {
  if (lane.broken) return;
  try {
    lane.filled->progress();
    if (!lane.tellings.empty()) lane.tellings.poll();
  } catch (...) {
    lane.broken = true;
    const Error error = current_error();
    ErrorContext context = error.context();
    context.comm = lane.comm->name;
    context.backend = lane.name;
    fail_locked(*lane.comm, Error(error.kind(), fmt::format("{} on comm {} failed: {}", lane.name, lane.comm->name, error.what()),
                                  context));
  }
}

bool Engine::progress_locked() {
  board_.note_poll();
  for (std::size_t i = 0; i < busy_lanes_.size(); ++i) progress_lane(*busy_lanes_[i]);
  bool some_complete = false, moved = false;
  for (std::size_t i = 0; i < pending_.size(); ++i) {   // completing one may start or append others
    Operation& operation = *pending_[i];
    if (operation.state.load(std::memory_order_relaxed) == Operation::State::active) {
      try {
        const Poll seen = operation.transfer->poll();
        moved = moved || seen == Poll::moved;
        if (seen == Poll::complete) {
          settle(operation);
        } else if (!operation.launched) {
          look_for_launch(operation);
        }
      } catch (...) {
        finish_with_error(operation, current_error());
      }
    } else if (operation.size) {
      look_for_size(operation);
      moved = moved || !operation.size;
    }
    if (!operation.after_connecting.empty()) look_for_connection(operation);
    some_complete = some_complete || operation.complete();
  }
  std::erase_if(busy_lanes_, [](LaneState* lane) { return lane->active == 0 && !lane->owes(); });
  undelivered_lanes_ = static_cast<int>(
      std::count_if(busy_lanes_.begin(), busy_lanes_.end(), [](LaneState* lane) { return lane->active == 0; }));
  if (!some_complete) {
    if (!graves_.empty()) empty_graves();
    return moved;
  }
  std::erase_if(pending_, [](Operation* operation) {
    if (!operation->complete()) return false;
    operation->release();
    return true;
  });
  if (!graves_.empty()) empty_graves();
  for (Waiter* asleep : sleepers_) asleep->wake_own();
  return true;
}

void Engine::check(CommState& comm) {
  attend();
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
  const Hold hold(*this);
  fail_locked(comm, why);
}

void Engine::fail_as_told(CommState& comm, const Error& why) {
  const Hold hold(*this);
  fail_locked(comm, why, false);
}

void Engine::fail_locked(CommState& comm, const Error& why, bool tell) {
  if (comm.failure) return;
  if (tell && outside_.tell_failure) outside_.tell_failure(comm, why);
  // Later operations get the cause with their own place in front, so the first one's place is dropped.
  ErrorContext context = why.context();
  context.op.reset();
  comm.failure = Error(why.kind(), std::string("the comm failed earlier: ") + why.what(), context);
  for (auto& lane : comm.lanes) {
    if (lane->lane) lane->lane->abort(why);
    lane->tellings.drop();
  }
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    Operation& operation = *pending_[i];
    if (operation.comm.get() != &comm || operation.complete()) continue;
    operation.error = with_context(why, operation);
    settle(operation);
  }
  for (Operation* unplaced : std::exchange(comm.unplaced, {})) unplaced->release();
}

void Engine::close(CommState& comm) {
  finish_in_streams(comm);
  const Hold hold(*this);
  if (comm.lanes.empty()) return;
  const bool pending = std::any_of(pending_.begin(), pending_.end(), [&](const Operation* operation) {
    return operation->comm.get() == &comm && !operation->complete();
  });
  const Error gone(ErrorKind::invalid, "its context no longer exists", {});
  if (pending) {
    fail_locked(comm, Error(ErrorKind::aborted, "its context was destroyed before the operation was complete"));
  }
  comm.failure = gone;
  std::erase_if(pending_, [](Operation* operation) {
    if (!operation->complete()) return false;
    operation->release();
    return true;
  });
  std::erase_if(busy_lanes_, [&](LaneState* lane) {
    return std::any_of(comm.lanes.begin(), comm.lanes.end(), [&](const auto& own) { return own.get() == lane; });
  });
  comm.lanes.clear();
  in_streams_.erase(comm.name);
}

void Engine::bury(CommState* comm) noexcept {
  std::unique_ptr<CommState> gone(comm);
  if (!fork_guard_.here()) return static_cast<void>(gone.release());   // the libraries are the parent's
  const bool inside = mutex_.held_here();
  std::unique_lock<Spinlock> lock(mutex_, std::defer_lock);
  if (!inside) lock.lock();
  graves_.push_back(std::move(gone));
  if (!inside) empty_graves();
}

void Engine::sweep() noexcept {
  const std::lock_guard lock(mutex_);
  empty_graves(true);
}

void Engine::empty_graves(bool all) noexcept {
  const auto may_go = [all](const std::unique_ptr<CommState>& comm) {
    return all || std::all_of(comm->lanes.begin(), comm->lanes.end(), [](const auto& lane) { return lane->tellings.empty(); });
  };
  for (auto grave = graves_.begin(); (grave = std::find_if(graves_.begin(), graves_.end(), may_go)) != graves_.end();) {
    const std::unique_ptr<CommState> gone = std::move(*grave);
    graves_.erase(grave);
    std::erase_if(busy_lanes_, [&](LaneState* lane) {
      return std::any_of(gone->lanes.begin(), gone->lanes.end(), [&](const auto& own) { return own.get() == lane; });
    });
    undelivered_lanes_ = static_cast<int>(
        std::count_if(busy_lanes_.begin(), busy_lanes_.end(), [](LaneState* lane) { return lane->active == 0; }));
    gone->lanes.clear();
    in_streams_.erase(gone->name);
  }
}

/// By the lanes with active operations; those that only owe something are polled beside them.
Engine::Waiting Engine::how_to_wait() const {
  const bool any_active = std::any_of(busy_lanes_.begin(), busy_lanes_.end(), [](const LaneState* lane) { return lane->active > 0; });
  Waiting waiting;
  bool first = true;
  for (const LaneState* lane : busy_lanes_) {
    if (any_active && lane->active == 0) {
      waiting.owing = true;
      continue;
    }
    const Manner own = Manner::of(lane->waiter);
    waiting.manner = first ? own : both(waiting.manner, own);
    waiting.waiter = first || waiting.waiter == lane->waiter ? lane->waiter : nullptr;
    first = false;
  }
  return waiting;
}

}  // namespace medley::core

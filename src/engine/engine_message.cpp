// Sends and receives on host memory that nothing holds. They start at issue; one that is complete at its first poll
// never becomes pending, and the others get only the bookkeeping that a message needs. docs/proofs.md, "Messages that
// are complete when they are issued", says why that is safe and what a message costs.
#include <medley/sdk/current_error.hpp>
#include <utility>

#include "engine/adopt_message.hpp"
#include "engine/engine.hpp"
#include "engine/hazard_index.hpp"
#include "engine/message_record.hpp"

namespace medley::core {

/// The kernel's coarse clock costs a fifth of the exact one. It lags by a tick at most, 10 ms, and the result is used
/// for another millisecond; both are added: no deadline fires early, and none of a second or more is noticeably late.
[[gnu::noinline]] Deadline Engine::new_deadline(std::chrono::nanoseconds duration, std::uint64_t begun) {
  constexpr std::chrono::milliseconds lag(11);
  if (duration < std::chrono::seconds(1)) return deadline_after(duration);
  const Deadline now(std::chrono::nanoseconds(clock_ns(CLOCK_MONOTONIC_COARSE)) + lag);
  const auto millisecond = static_cast<std::uint64_t>(1e6 / ns_per_tick());
  last_deadline_ = {duration, begun, begun + millisecond,
                    duration > Deadline::max() - now ? Deadline::max() : now + duration};
  return last_deadline_.deadline;
}

/// admit() for the usual call: it names no algorithm, and its route is known.
[[gnu::always_inline]] inline const Route& Engine::admit_message(CommState& comm, Call& call,
                                                                 std::string_view backend) const {
  if (call.algorithm.empty() && !call.feedback) [[likely]] {
    if (const Route* const known = plain_route(comm, call.op, call.dtype, backend)) [[likely]]
      return *known;
  }
  const Route& found = admit(comm, call, backend);
  if (&found == &found.lane->named && same_name(found.lane->name, backend)) comm.last_named = found.lane;
  return found;
}

[[gnu::always_inline]] inline void Engine::count_message(CommState& comm, const Call& call, std::string_view backend) {
  if (comm.message_sizes) [[unlikely]]
    return count(comm, call, backend);
  comm.count(false);
}

[[gnu::always_inline]] inline Record* Engine::record_message(const CommState& comm, const Call& call,
                                                             const Route& route, bool async, std::uint64_t issued,
                                                             std::uint64_t completed) {
  if (!recorder_) [[unlikely]]
    return nullptr;
  const std::uint8_t algorithm = call.algorithm.empty() ? 0 : recorder_->algorithm(call.algorithm);
  return &write_message_record(*recorder_, comm,
                               {call.op, call.dtype, call.root, call.tag, call.in_count, call.out_count}, route,
                               algorithm, async, issued, completed);
}

Operation* Engine::issue_message(const std::shared_ptr<CommState>& shared, Call& call, const Options& options,
                                 int& source) {
  refuse_forked_child();  // before the lock, which the parent may have held
  handle_events();
  CommState& comm = *shared;
  Operation* message = nullptr;
  try {
    const Hold hold(*this);
    const Route& route = admit_message(comm, call, options.backend);
    if (call.op == Op::send) comm.short_sends = route.lane->sends_now;
    count_message(comm, call, options.backend);
    if (!options.async && idle_locked() && !comm.checked) {
      message = issue_alone(shared, call, options, route, source);
    } else if (const Access access = access_of(call); scheduler_.may_start(call, access, *route.lane)) [[likely]] {
      message = start_message(shared, call, options, route, access, source);
    } else {
      message = enlist_behind(shared, call, options, route, {}, {});
    }
  } catch (...) {
    if (!options.async) await_abort(comm);  // until then its libraries may write to the caller's memory
    throw;
  }
  return options.async || !message ? message : wait_for_issued(message, options, source);
}

[[gnu::always_inline]] inline Operation* Engine::start_message(const std::shared_ptr<CommState>& shared,
                                                               const Call& call, const Options& options,
                                                               const Route& route, const Access& access, int& source) {
  CommState& comm = *shared;
  LaneState& lane = *route.lane;
  const std::uint64_t begun = ticks();
  const ShowInLibrary shown(board_, comm, lane, call.op, call.root);
  Transfer* transfer = nullptr;
  try {
    transfer = lane.filled->start(call);
  } catch (...) {
    return fail_message(shared, call, options, route, nullptr, begun, current_error());
  }
  if (!transfer) {
    end_at_issue(comm, call, options, route, access, begun);
    return nullptr;
  }
  Operation* const message = OperationPool::take();
  message->call = call;
  return poll_started(*message, shared, options, route, access, transfer, begun, source);
}

/// The message, an operation of the pool whose `call` is set, is with its library. Null if it is complete at its first
/// poll.
Operation* Engine::poll_started(Operation& message, const std::shared_ptr<CommState>& shared, const Options& options,
                                const Route& route, const Access& access, Transfer* transfer, std::uint64_t begun,
                                int& source) {
  CommState& comm = *shared;
  LaneState& lane = *route.lane;
  const Call& call = message.call;
  bool waits = false;
  try {
    waits = transfer->poll_when_ready(progress_.ready(), message);
    if (!waits && transfer->poll() == Poll::complete) {
      check_size(comm, call, *transfer);
      source = sender_of(call, *transfer);
      transfer->release();
      transfer = nullptr;
    }
  } catch (...) {
    return fail_taken(message, shared, options, route, transfer, begun);
  }
  if (!transfer) {
    end_at_issue(comm, call, options, route, access, begun);
    OperationPool::keep(message);
    return nullptr;
  }
  message.record = number_of(record_message(comm, call, route, options.async, begun, 0));
  if (!call.algorithm.empty()) [[unlikely]] {  // the caller's string may be gone before it ends
    message.algorithm = call.algorithm;
    message.call.algorithm = message.algorithm;
  }
  adopt_message(message, shared, comm, options, access, lane, transfer, begun);
  waits ? progress_.add_waiting(message) : progress_.add(message);
  if (thread_ && options.async) thread_->nudge();  // a caller that waits makes the progress itself
  return &message;
}

/// In a handler, for an operation of the pool: the current exception is its error.
[[gnu::cold, gnu::noinline]] Operation* Engine::fail_taken(Operation& message, const std::shared_ptr<CommState>& comm,
                                                           const Options& options, const Route& route,
                                                           Transfer* transfer, std::uint64_t begun) {
  const Call failed = message.call;
  OperationPool::keep(message);
  return fail_message(comm, failed, options, route, transfer, begun, current_error());
}

/// A message that is complete for its caller.
[[gnu::always_inline]] inline void Engine::end_at_issue(const CommState& comm, const Call& call, const Options& options,
                                                        const Route& route, const Access& access, std::uint64_t begun) {
  LaneState& lane = *route.lane;
  // A copy of a line takes as long as reading the clock: it ends when it begins.
  const bool brief = lane.inside_host && bytes_of(access) <= cache_line_bytes;
  record_message(comm, call, route, options.async, begun, brief ? begun : ticks());
  if (lane.has_undelivered()) watch_undelivered(lane);
}

/// It becomes a pending operation that ends with the error, as if it had failed later.
[[gnu::cold]] Operation* Engine::fail_message(const std::shared_ptr<CommState>& comm, const Call& call,
                                              const Options& options, const Route& route, Transfer* transfer,
                                              std::uint64_t begun, const Error& error) {
  board_.hide_inline();
  Record* const recorded = record(*comm, call, route, options, begun);
  Operation* const operation = enlist(make_operation(comm, call, options, *route.lane, begun), options);
  operation->record = number_of(recorded);
  scheduler_.add(*operation);
  if (transfer) {  // not adopt(), which would poll it
    operation->transfer = transfer;
    ++operation->lane->active;
  }
  finish_with_error(*operation, error);
  return operation;
}

/// settle() for a message that was started at issue and ends well: it has no lists, no size to agree on, no device and
/// no checker.
void Engine::settle_message(Operation& message) {
  // Relaxed: as Operation::source says
  message.source.store(sender_of(message.call, *message.transfer), std::memory_order_relaxed);
  progress_.remove(message);
  std::exchange(message.transfer, nullptr)->release();
  --message.lane->active;
  note_message_end(message.record, progress_.moment());
  const OperationRef held(&message);  // the engine's reference
  pending_.erase(message);
  if (!message.callbacks.empty()) [[unlikely]] {
    finish(message);
  } else {
    board_.hide_message(std::exchange(message.slot, -1));
    some_complete_ = true;
    message.reusable = message.algorithm.empty();
    message.state.store(Operation::State::complete, std::memory_order_release);  // pairs with Operation::complete()
  }
  scheduler_.finished_message(message);
}

}  // namespace medley::core

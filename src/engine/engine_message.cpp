// Sends and receives on host memory that nothing holds. They start at issue; one that is complete at its first poll never becomes
// pending, and the others get only the bookkeeping that a message needs. docs/guarantees.md, "Messages that are complete when
// they are issued", says why that is safe and what a message costs.
#include <medley/sdk/current_error.hpp>
#include <utility>

#include "engine/engine.hpp"
#include "engine/hazard_index.hpp"

namespace medley::core {
namespace {

// Inside a host, a send or receive up to here is one copy of a cache line.
constexpr std::int64_t one_line = 64;

std::int64_t bytes_of(const Access& access) { return access.end - access.begin; }

}  // namespace

/// The kernel's coarse clock costs a fifth of the exact one. It lags by a tick at most, 10 ms, and the result is used for another
/// millisecond; both are added: no deadline fires early, and none of a second or more is noticeably late.
Deadline Engine::deadline_of(std::chrono::nanoseconds duration, std::uint64_t begun) {
  constexpr std::chrono::milliseconds lag(11);
  static const auto millisecond = static_cast<std::uint64_t>(1e6 / ns_per_tick());
  if (duration < std::chrono::seconds(1)) return deadline_after(duration);
  if (duration == last_deadline_.duration && begun - last_deadline_.begun < millisecond) return last_deadline_.deadline;
  const Deadline now(std::chrono::nanoseconds(clock_ns(CLOCK_MONOTONIC_COARSE)) + lag);
  last_deadline_ = {duration, begun, duration > Deadline::max() - now ? Deadline::max() : now + duration};
  return last_deadline_.deadline;
}

Operation* Engine::start_message(const std::shared_ptr<CommState>& shared, const Call& call, const Options& options,
                                 const Route& route, int& source) {
  CommState& comm = *shared;
  LaneState& lane = *route.lane;
  const std::uint64_t begun = ticks();
  if (comm.status) board_.show_inline(*comm.status, lane.place, call.op, call.root);
  Transfer* transfer = nullptr;
  try {
    transfer = lane.filled->start(call);
    if (transfer && transfer->poll() == Poll::complete) {
      check_size(comm, call, *transfer);
      source = sender_of(call, *transfer);
      transfer->release();
      transfer = nullptr;
    }
  } catch (...) {
    return fail_message(shared, call, options, route, transfer, begun, current_error());
  }
  board_.hide_inline();
  if (transfer) return adopt_message(shared, call, options, lane, transfer, record(comm, call, route, options, begun, begun), begun);
  // A copy of a line takes as long as reading the clock: it ends when it begins.
  const bool brief = lane.inside_host && bytes_of(access_of(call)) <= one_line;
  record(comm, call, route, options, begun, begun, brief ? begun : ticks());
  if (lane.has_undelivered()) watch_undelivered(lane);
  return nullptr;
}

/// The message is with its library and not complete. What add(), adopt() and look_for_launch() find out for other operations is
/// known here: nothing holds it, nothing follows it yet, and on host memory it is launched.
Operation* Engine::adopt_message(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options, LaneState& lane,
                                 Transfer* transfer, Record* recorded, std::uint64_t begun) {
  Operation* const message = make_operation(comm, call, options, lane, begun).release();
  message->references.store(2, std::memory_order_relaxed);  // relaxed: nobody else has seen it yet; the engine's and the caller's
  message->record = number_of(recorded);
  message->transfer = transfer;
  message->started_at_issue = true;
  message->state.store(Operation::State::active, std::memory_order_relaxed);   // relaxed: as in adopt()
  if (const Access access = access_of(call); bytes_of(access) > 0) message->accesses.assign(access);
  pending_.push_back(*message);
  scheduler_.add_started(*message);
  board_.show(*message);
  ++lane.active;
  progress_.add(*message);
  if (thread_ && options.async) thread_->nudge();   // a caller that waits makes the progress itself
  return message;
}

/// It becomes a pending operation that ends with the error, as if it had failed later.
[[gnu::cold]] Operation* Engine::fail_message(const std::shared_ptr<CommState>& comm, const Call& call, const Options& options,
                                              const Route& route, Transfer* transfer, std::uint64_t begun, const Error& error) {
  board_.hide_inline();
  Record* const recorded = record(*comm, call, route, options, begun);
  Operation* const operation = enlist(make_operation(comm, call, options, *route.lane, begun), options);
  operation->record = number_of(recorded);
  scheduler_.add(*operation);
  if (transfer) adopt(*operation, transfer, begun);
  finish_with_error(*operation, error);
  return operation;
}

/// settle() for a message that was started at issue and ends well: it has no lists, no size to agree on, no device and no checker.
void Engine::settle_message(Operation& message) {
  message.source.store(sender_of(message.call, *message.transfer), std::memory_order_relaxed);  // relaxed: as Operation::source says
  progress_.remove(message);
  std::exchange(message.transfer, nullptr)->release();
  --message.lane->active;
  if (message.record) note_end(recorder_->find(message.record), false, progress_.moment());
  const OperationRef held(&message);   // the engine's reference
  pending_.erase(message);
  finish(message);
  scheduler_.finished(message);
}

}  // namespace medley::core

// How a message that its library has started and not completed becomes a pending operation. Used by the engine's ways
// for messages.
#pragma once

#include "engine/engine.hpp"

namespace medley::core {

inline std::int64_t bytes_of(const Access& access) { return access.end - access.begin; }

/// What add(), adopt() and look_for_launch() find out for other operations is known here: nothing holds it, nothing
/// follows it yet, and on host memory it is launched. `shared` owns `comm`.
[[gnu::always_inline]] inline void Engine::adopt_message(Operation& message, const std::shared_ptr<CommState>& shared,
                                                         const CommState& comm, const Options& options,
                                                         const Access& access, LaneState& lane, Transfer* transfer,
                                                         std::uint64_t begun) {
  message.comm = shared;
  message.lane = &lane;
  message.sequence = comm.messages;
  message.deadline = deadline_of(options.deadline.count() > 0 ? options.deadline : comm.deadline, begun);
  // Relaxed: nobody else has seen it yet; the engine's and the caller's
  message.references.store(2, std::memory_order_relaxed);
  message.transfer = transfer;
  message.started_at_issue = true;
  message.state.store(Operation::State::active, std::memory_order_relaxed);  // relaxed: as in adopt()
  if (bytes_of(access) > 0) [[likely]] {
    message.accesses.assign(access);
  } else {
    message.accesses.clear();
  }
  pending_.push_back(message);
  scheduler_.add_started(message, access);
  if (comm.status) [[likely]]
    message.slot = board_.show_message(*comm.status, lane.place, message.call.op, message.sequence, message.call.root);
  ++lane.active;
}

}  // namespace medley::core

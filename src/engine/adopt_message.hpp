// What the engine's ways for messages share: showing one to ranks that ask while its library has it, and making it a
// pending operation once its library has started and not completed it.
#pragma once

#include "engine/engine.hpp"

namespace medley::core {

inline std::int64_t bytes_of(const Access& access) { return access.end - access.begin; }

/// Shows a message on the status board while its library has it: a rank that is stuck there cannot answer. Inside a host
/// it is a copy in memory, in which nothing can be stuck.
class ShowInLibrary {
 public:
  [[gnu::always_inline]] ShowInLibrary(StatusBoard& board, const CommState& comm, const LaneState& lane, Op op,
                                       int peer)
      : board_(!lane.inside_host && comm.status ? &board : nullptr) {
    if (board_) board_->show_inline(*comm.status, lane.place, op, peer);
  }
  [[gnu::always_inline]] ~ShowInLibrary() {
    if (board_) board_->hide_inline();
  }
  ShowInLibrary(const ShowInLibrary&) = delete;
  ShowInLibrary& operator=(const ShowInLibrary&) = delete;

 private:
  StatusBoard* board_;
};

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

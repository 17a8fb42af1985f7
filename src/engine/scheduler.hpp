// Decides when an operation may start: after earlier operations on the same memory, in lane order, in message order,
// and in the launch order of a device (docs/proofs.md has the rules and the proof that they suffice). Starts
// operations when nothing blocks them, and calls no library itself. The engine owns one, under its lock.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "engine/comm_state.hpp"
#include "engine/hazard_index.hpp"
#include "engine/operation.hpp"
#include "engine/stream_order.hpp"

namespace medley::core {

class MEDLEY_API Scheduler {
 public:
  /// `start` is called for an operation that is no longer blocked.
  explicit Scheduler(std::function<void(Operation&)> start) : start_(std::move(start)) {}

  /// How many collectives of a lane may be under way at once.
  static std::size_t most_started(const LaneState& lane);
  /// Whether a message on host memory could start at once: no pending operation touches its memory, and no earlier
  /// message that it must follow is still unstarted.
  bool may_start(const Call& message, const Access& access, const LaneState& lane) const {
    if (!lane.messages.empty() && lane.messages.holds(message)) return false;
    return !hazards_.conflicts(access);
  }
  /// The same, where no other message of the lane waits to start: nothing to look up by tag.
  [[gnu::always_inline]] bool may_start(const Access& access, const LaneState& lane) const {
    return lane.messages.empty() && !hazards_.conflicts(access);
  }
  /// Adds an operation that was just issued and sets its `blockers`. The cost does not depend on how many are pending.
  void add(Operation& operation);
  /// Adds an operation of the engine's own, which touches no user memory and takes its lane order before all that wait
  /// for theirs.
  void add_ahead(Operation& operation);
  /// Adds a message on host memory that may_start() allowed and its library has started, with the memory that it
  /// touches.
  [[gnu::always_inline]] void add_started(Operation& message, const Access& access) {
    message.order = ++issued_;
    message.launched = true;
    if (access.begin != access.end) [[likely]]
      hazards_.add_without_conflict(message, access);
    streams_.add(message);
  }
  /// The route of the comm's first collective that waits for its lane order is now known: puts it behind the previous
  /// one on its lane.
  void assign_lane_order(Operation& operation);
  /// The same for a collective that has left that queue.
  void take_lane_order(Operation& operation);
  /// Adds a blocker from outside the scheduler, until release().
  static void hold(Operation& operation);
  void release(Operation& operation);

  /// The library has the operation, and on CUDA memory it is in its stream: releases the dependents that waited for
  /// that.
  void launched(Operation& operation);
  /// The operation is complete or failed: releases its dependents.
  void finished(Operation& operation);
  /// The same for what add_started() added.
  [[gnu::always_inline]] void finished_message(Operation& message) {
    hazards_.remove(message);
    streams_.finished(message);
    if (!message.lane->messages.empty()) message.lane->messages.remove(message);
    if (message.followed) [[unlikely]]
      release_dependents(message);
  }
  /// Called before failing operations, which have their error set, are finished: the dependents of an operation that
  /// has not started inherit its own dependencies.
  void withdraw(const std::vector<Operation*>& failing, const PendingList& pending);
  /// Releases collectives held by connecting messages or collectives in phases that take too long to launch.
  void look_for_late_launches();

  const StreamOrder& streams() const { return streams_; }

 private:
  using Dependents = std::vector<Operation*> Operation::*;
  static void behind(Operation& earlier, Dependents list, Operation& operation);
  void release_dependents(Operation& operation);
  static void behind_memory(Operation& earlier, Operation& operation);
  static void behind_launch(Operation& earlier, Operation& operation);
  static void behind_all_launches(Operation& earlier, Operation& collective);
  static void order_in_lane(Operation& operation, bool even_if_dependent);
  void order_in_streams(Operation& operation);
  void order_message(Operation& message);
  void release_all(std::span<Operation* const> waiting);

  std::function<void(Operation&)> start_;
  HazardIndex hazards_;
  StreamOrder streams_;
  std::uint64_t issued_ = 0;
  std::deque<Operation*> ready_;  ///< no longer blocked; a reference each
  bool starting_ = false;
};

}  // namespace medley::core

// Decides when an operation may start: after the earlier ones on the same memory, in its place on its lane, in the order of
// its messages, and in the order of launches on a device (docs/guarantees.md has the rules and why they are enough).
// It starts operations when nothing holds them any more, and calls no library itself. The engine owns one, under its lock.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "engine/hazard_index.hpp"
#include "engine/operation.hpp"
#include "engine/stream_order.hpp"

namespace medley::core {

class MEDLEY_API Scheduler {
 public:
  /// `start` is called for an operation that nothing holds any more.
  explicit Scheduler(std::function<void(Operation&)> start) : start_(std::move(start)) {}

  /// Whether a message on host memory could start at once: nothing pending touches its memory, and no earlier
  /// message that it must follow waits to be started.
  bool may_start(const Call& message, const LaneState& lane) const;
  /// Of an operation that was just issued: afterwards `blockers` says how many things hold it. Its cost does not depend on
  /// how many are pending.
  void add(Operation& operation);
  /// The route of the first collective of its comm that waits for its lane order is known: puts it behind the one before it on its lane.
  void assign_lane_order(Operation& operation);
  /// Something outside holds it as well, until release().
  static void hold(Operation& operation);
  void release(Operation& operation);

  /// The library has it, and on CUDA memory it is in its stream: starts what waited for that.
  void launched(Operation& operation);
  /// It is complete or failed: starts what waited for it.
  void finished(Operation& operation);
  /// Before operations that are about to fail, which have their error set, are finished: what waited for one of them that has not
  /// started must wait for what that one waited for.
  void withdraw(const std::vector<Operation*>& failing, const PendingList& pending);
  /// Releases what is held by messages that connect, where they have or take too long.
  void look_for_connections();

  const StreamOrder& streams() const { return streams_; }

 private:
  static void behind(std::vector<Operation*>& list, Operation& operation);
  static void behind_memory(Operation& earlier, Operation& operation);
  static void behind_launch(Operation& earlier, Operation& operation);
  static void behind_connection(Operation& message, Operation& collective);
  static void behind_last_collective(Operation& operation, bool even_if_reported);
  void order_in_streams(Operation& operation);
  void order_message(Operation& message);
  void release_all(std::span<Operation* const> waiting);

  std::function<void(Operation&)> start_;
  HazardIndex hazards_;
  StreamOrder streams_;
  std::uint64_t issued_ = 0;
  std::deque<Operation*> ready_;   ///< held by nothing any more, a reference each
  bool starting_ = false;
};

}  // namespace medley::core

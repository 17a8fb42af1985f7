// Progresses started operations: polls them and calls progress on their lanes, and turns exceptions into an error of
// the operation or of the lane. The engine owns one, under its lock, and acts on the results.
#pragma once

#include <medley/error.hpp>
#include <vector>

#include "base/ticks.hpp"
#include "engine/backoff.hpp"
#include "engine/comm_state.hpp"
#include "engine/operation.hpp"

namespace medley::core {

class MEDLEY_API Progress {
 public:
  /// The engine's callbacks. Each may add and remove operations and lanes.
  class Events {
   public:
    virtual void on_complete(Operation& operation) = 0;
    virtual void on_error(Operation& operation, const Error& error) = 0;
    /// An operation that was not launched was polled.
    virtual void on_poll(Operation& operation) = 0;
    virtual void on_lane_error(LaneState& lane, const Error& error) = 0;

   protected:
    ~Events() = default;
  };
  enum class Extent { some, all };
  static constexpr std::size_t polled_in_a_pass = 128;  ///< with Extent::some: a pass then takes about 1 µs

  explicit Progress(Events& events) : events_(events) {}

  /// A started operation is polled until it is removed; if its transfer says when, only then.
  void add(Operation& operation) {
    if (!operation.transfer->poll_when_ready(ready_, operation)) add_active(operation);
    add_lane(*operation.lane);
  }
  /// The same for one whose transfer will put it on ready().
  void add_waiting(Operation& operation) { add_lane(*operation.lane); }
  PollList& ready() { return ready_; }
  void remove(Operation& operation) {
    if (PollList::contains(operation)) ready_.erase(operation);
    if (ActiveList::contains(operation)) remove_active(operation);
  }
  /// Adds a lane that needs progress; returns whether it is new.
  bool add_lane(LaneState& lane) {
    return (lanes_.empty() || lanes_.front() != &lane) && add_another(lane);  // mostly there is one
  }
  void remove_lanes(const CommState& comm);
  /// Adds a lane with something undelivered that no operation here waits for; returns whether it is new.
  bool add_undelivered(LaneState& lane);

  /// One pass. True if anything moved. `some`: of thousands of operations, the oldest (libraries complete them first)
  /// and a round-robin part of the others, so that a pass takes as long with many as with few. `all`: every operation,
  /// unless one has moved; only after such a pass may a thread sleep.
  bool run(Extent extent = Extent::some);
  /// The time, for operations that a pass finds complete one after the other: read once until a poll has done more than
  /// look.
  std::uint64_t moment() { return moment_ ? moment_ : moment_ = ticks(); }
  /// Polls one operation that somebody waits for; true if it moved.
  bool poll(Operation& operation);

  /// Whether lanes have something to deliver that belongs to no active operation.
  bool undelivered() const { return undelivered_lanes_ > 0; }
  bool has_value_exchange() const;
  /// Given by the lanes with active operations; lanes that are only undelivered are polled beside them.
  Waiting how_to_wait() const;
  /// How many are polled in every pass.
  std::size_t active() const { return active_count_; }

 private:
  static constexpr std::size_t oldest = polled_in_a_pass / 2, others = polled_in_a_pass - oldest;

  void add_active(Operation& operation) {
    active_.push_back(operation);
    ++active_count_;
  }
  void remove_active(Operation& operation);
  bool add_another(LaneState& lane);
  void move_lane(LaneState& lane);
  bool poll_ready();
  Poll look(Operation& operation);
  bool poll_from(Operation* first, std::size_t count);
  void count_undelivered();

  Events& events_;
  ActiveList active_;  ///< polled in every pass, in order of start
  std::size_t active_count_ = 0;
  PollList ready_;                 ///< whose transfers asked for a poll, in that order
  Operation* next_ = nullptr;      ///< the next to poll in the running pass
  Operation* resume_ = nullptr;    ///< where the next pass resumes beyond the oldest
  std::vector<LaneState*> lanes_;  ///< with active operations, or undelivered
  int undelivered_lanes_ = 0;      ///< those of them without active operations
  std::uint64_t moment_ = 0;       ///< 0: not read yet
};

}  // namespace medley::core

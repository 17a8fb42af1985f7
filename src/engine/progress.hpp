// Moves what was started: polls operations and gives their lanes time, and turns whatever they throw into an error of the
// operation or of the lane. The engine owns one, under its lock, and acts on what it finds.
#pragma once

#include <medley/error.hpp>
#include <vector>

#include "engine/backoff.hpp"
#include "engine/comm_state.hpp"
#include "engine/operation.hpp"

namespace medley::core {

class MEDLEY_API Progress {
 public:
  /// What the engine does about what was found. Each may add and remove operations and lanes.
  class Events {
   public:
    virtual void on_complete(Operation& operation) = 0;
    virtual void on_error(Operation& operation, const Error& error) = 0;
    /// One that was not launched was polled.
    virtual void on_poll(Operation& operation) = 0;
    virtual void on_lane_error(LaneState& lane, const Error& error) = 0;

   protected:
    ~Events() = default;
  };
  enum class Extent { some, all };
  static constexpr std::size_t polled_in_a_pass = 128;   ///< with Extent::some: a pass takes about 1 µs then

  explicit Progress(Events& events) : events_(events) {}

  /// A started operation is polled until it is removed.
  void add(Operation& operation);
  void remove(Operation& operation);
  /// A lane that needs to be moved; whether it was not one before.
  bool add_lane(LaneState& lane);
  void remove_lanes(const CommState& comm);
  /// One that has something to deliver that nobody waits for; whether that is news.
  bool add_undelivered(LaneState& lane);

  /// One pass. True if anything moved. `some`: of thousands the oldest, which libraries complete first, and a part of the others
  /// by turns, so that a pass takes as long with many as with few. `all`: each of them, unless one has moved: only then a thread
  /// may sleep.
  bool run(Extent extent = Extent::some);
  /// One operation, which somebody waits for; true if it moved.
  bool poll(Operation& operation);

  /// Whether lanes have something to deliver that no active operation stands for.
  bool undelivered() const { return owing_lanes_ > 0; }
  bool has_size_exchange() const;
  /// By the lanes with active operations; those that only owe something are polled beside them.
  Waiting how_to_wait() const;
  std::size_t active() const { return active_.size(); }

 private:
  static constexpr std::size_t oldest = polled_in_a_pass / 2, others = polled_in_a_pass - oldest;

  void move_lane(LaneState& lane);
  bool poll_from(Operation* first, std::size_t count);
  void count_owing();

  Events& events_;
  ActiveList active_;                    ///< in order of start
  Operation* next_ = nullptr;            ///< to be polled in the pass that runs
  Operation* resume_ = nullptr;          ///< where the next pass goes on beyond the oldest
  std::vector<LaneState*> lanes_;        ///< with active operations, or undelivered
  int owing_lanes_ = 0;
};

}  // namespace medley::core

// Operations, lanes and comms without libraries, for tests of the scheduler and its parts.
#pragma once

#include <cstddef>
#include <medley/backend.hpp>
#include <memory>

#include "algorithms/filled_lane.hpp"
#include "engine/comm_state.hpp"
#include "engine/hazard_index.hpp"
#include "engine/operation.hpp"

namespace medley::core::test {

class IdleLane final : public Lane {
 public:
  IdleLane(bool concurrent, bool in_streams) : concurrent_(concurrent), in_streams_(in_streams) {}
  Transfer* start(const Call&) override { return nullptr; }
  bool concurrent_collectives() const override { return concurrent_; }
  bool in_streams() const override { return in_streams_; }
  void abort(const Error&) noexcept override {}

 private:
  bool concurrent_, in_streams_;
};

/// A comm with one lane.
struct TestComm {
  explicit TestComm(bool concurrent = true, bool in_streams = false) : state(std::make_shared<CommState>()) {
    auto made = std::make_unique<LaneState>();
    auto filled = std::make_unique<algorithms::FilledLane>(std::make_unique<IdleLane>(concurrent, in_streams),
                                                           Capabilities(), "idle", 0, 2);
    made->comm = state.get();
    made->filled = filled.get();
    made->in_streams = made->connects_lazily = in_streams;
    made->messages = MessageOrder(!in_streams);
    made->lane = std::move(filled);
    lane = made.get();
    state->lanes.push_back(std::move(made));
  }
  std::shared_ptr<CommState> state;
  LaneState* lane;
};

inline OperationRef make(const TestComm& comm, Op op, const std::byte* begin, const std::byte* end, bool write,
                         int peer = 0, int tag = 0) {
  OperationRef made(new Operation);
  made->comm = comm.state;
  made->lane = comm.lane;
  made->call.op = op;
  made->call.root = peer;
  made->call.tag = tag;
  if (begin != end) made->accesses.push_back({begin, end, write});
  return made;
}

}  // namespace medley::core::test

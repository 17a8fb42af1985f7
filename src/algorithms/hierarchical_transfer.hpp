// One collective of a hierarchical backend on host memory. Created by the lane.
#pragma once

#include "algorithms/job.hpp"
#include "algorithms/phased_transfer.hpp"

namespace medley::algorithms {

class HierarchicalTransfer final : public PhasedTransfer {
 public:
  HierarchicalTransfer(HierarchicalLane& lane, const Call& call) : PhasedTransfer(lane, call), number_(order_of_phases().add()), task_(run()) {}

  Poll poll() override {
    moved_ = false;
    const Poll seen = task_.poll();
    if (seen == Poll::complete) complete_ = true;
    return seen == Poll::waiting && moved_ ? Poll::moved : seen;
  }

 private:
  Task run() {
    switch (call_.op) {
      case Op::all_reduce: co_await all_reduce(); break;
      case Op::reduce_scatter: co_await reduce_scatter(); break;
      case Op::all_gather: co_await all_gather(); break;
      case Op::broadcast: co_await broadcast(); break;
      default: co_await all_to_all(); break;
    }
    order_of_phases().pass_all(number_);
  }

  bool may_start(Stage stage) const { return order_of_phases().may_start(number_, stage); }
  void pass(Stage stage) { order_of_phases().pass(number_, stage); }
  /// Starts the prepared phase once all earlier collectives have passed this stage, and waits for it. A lane that runs one collective at a
  /// time is free for the next only behind it.
  Task over(Lane& lane, Stage stage) {
    co_await until([this, stage] { return may_start(stage); });
    start_phase(lane);
    if (lane.concurrent_collectives()) pass(stage);
    co_await until([this] {
      if (running_.empty()) return true;
      at_->progress();   // the event_count for a collective does not check whether its phases are filled in
      return running_.poll(moved_);
    });
    pass(stage);
  }
  Task entering() { return over(*lanes().inside, Stage::enter); }
  Task between() {
    name_own_reduction();
    return over(*lanes().between, Stage::between);
  }
  Task leaving() { return over(*lanes().leaving, Stage::leave); }

  Task all_reduce();
  Task reduce_scatter();
  Task all_gather();
  Task broadcast();
  Task all_to_all();
  Task direct_all_to_all(std::int64_t part);
  void by_place(std::byte* to, const std::byte* from, std::int64_t part) const;
  void by_host(std::byte* to, const std::byte* from, std::int64_t part) const;
  std::byte* room(Scratch& scratch, std::int64_t count) const { return (scratch = Scratch(bytes(count))).data(); }

  Scratch first_, second_;
  PhaseOrder::Number number_;   ///< its place in the order of each stage
  Task task_;
};

}  // namespace medley::algorithms

// One collective of a hierarchical backend on host memory. Created by the lane.
#pragma once

#include "algorithms/job.hpp"
#include "algorithms/phased_transfer.hpp"

namespace medley::algorithms {

class HierarchicalTransfer final : public PhasedTransfer {
 public:
  /// `skew`: of its slices, for a tensor or segment that is divided among the ranks of a host.
  HierarchicalTransfer(HierarchicalLane& lane, const Call& call, std::int64_t skew = 0)
      : PhasedTransfer(lane, call), skew_(skew), number_(order_of_phases().add()), task_(run()) {
    enter_order();
  }

  Poll poll() override { return step(task_); }
  /// Before its first phase and between two it waits for collectives in front of it.
  std::vector<int> awaited() const override { return under_way() ? PhasedTransfer::awaited() : awaited_by_earliest(); }

 private:
  Task run() {
    co_await until([this] { return order_of_phases().may_begin(number_); });
    switch (call_.op) {
      case Op::all_reduce: co_await all_reduce(); break;
      case Op::reduce_scatter: co_await reduce_scatter(); break;
      case Op::all_gather: co_await all_gather(); break;
      case Op::broadcast: co_await broadcast(); break;
      default: co_await all_to_all(); break;
    }
    order_of_phases().end(number_);
  }

  Lane* lane_of(const Transfer* phase) const override {
    return phase && phase == local_phase_ ? lanes().inside.get() : at_;
  }
  bool may_start(Stage stage) const { return order_of_phases().may_start(number_, stage); }
  void pass(Stage stage) { order_of_phases().pass(number_, stage); }
  /// Suspends until all earlier collectives have passed this stage. Before scratch is taken, so that waiting
  /// collectives hold none.
  auto turn(Stage stage) {
    return until([this, stage] { return may_start(stage); });
  }
  /// Starts the prepared phase in its turn, and waits for it. A lane that runs one collective at a time is free for the
  /// next only behind it.
  Task over(Lane& lane, Stage stage) {
    co_await turn(stage);
    start_phase(lane);
    if (lane.concurrent_collectives()) pass(stage);
    co_await until([this] {
      if (running_.empty()) return true;
      // Between polls the engine progresses a lane only for messages and for what it has filled in itself
      at_->progress();
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
  std::int64_t skew_;
  PhaseOrder::Number number_;  ///< its place in the order of each stage
  /// The part of a direct all_to_all inside the host, while it is under way
  const Transfer* local_phase_ = nullptr;
  Task task_;
};

}  // namespace medley::algorithms

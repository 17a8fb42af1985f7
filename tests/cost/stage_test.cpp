// Folding a schedule: what overlaps what, and when the host is the slower side.
#include "cost/stage.hpp"

#include <gtest/gtest.h>

#include "cost/run_pipeline.hpp"

namespace medley::cost {
namespace {

Entry kernel(Phase phase = Phase::forward) {
  Entry entry;
  entry.kind = Kind::memory;
  entry.phase = phase;
  return entry;
}

Entry reduction(int token = 0) {
  Entry entry;
  entry.kind = Kind::comm;
  entry.op = Op::all_reduce;
  entry.group = "dp";
  entry.token = token;
  return entry;
}

Entry wait_for_token(int token) {
  Entry entry;
  entry.kind = Kind::wait;
  entry.token = token;
  return entry;
}

/// The time of a one-stage schedule whose entries cost what `costs` says.
StageTime time_of(const Schedule& schedule, const std::vector<EntryCost>& costs) {
  return run_pipeline({fold_stage(schedule, Layout{}, costs, 0)})[0];
}

EntryCost compute(double us, double host_us = 0) { return {.us = us, .host_us = host_us, .cause = Cause::compute}; }
EntryCost comm(double us) { return {.us = us, .cause = Cause::dp, .link = group_index("dp")}; }

TEST(Stage, RepeatedBlocksCountEveryTime) {
  Schedule s;
  const auto layer = s.add_block();
  s.add(layer, kernel());
  Schedule::Node node;
  node.is_block = true;
  node.index = layer;
  node.repeat = 96;
  s.add(0, node);
  EXPECT_DOUBLE_EQ(time_of(s, {compute(10)}).end_us, 960);
}

TEST(Stage, AsynchronousReductionHidesBehindLaterKernels) {
  Schedule s;
  s.add(0, kernel());
  s.add(0, reduction(3));
  s.add(0, kernel());
  s.add(0, wait_for_token(3));
  EXPECT_DOUBLE_EQ(time_of(s, {compute(10), comm(25), compute(40), {}}).end_us, 50);
  const StageTime longer = time_of(s, {compute(10), comm(60), compute(40), {}});
  EXPECT_DOUBLE_EQ(longer.end_us, 70);
  EXPECT_DOUBLE_EQ(at(longer.spent, Cause::dp), 20);
}

TEST(Stage, ReductionsOfOneGroupQueue) {
  Schedule s;
  s.add(0, reduction(3));
  s.add(0, reduction(3));
  s.add(0, wait_for_token(3));
  EXPECT_DOUBLE_EQ(time_of(s, {comm(30), comm(30), {}}).end_us, 60);
}

TEST(Stage, ReductionLeftOverFromABlockIsWaitedForLater) {
  // Gradient buckets start inside the layers of the last backward pass and are waited for after it.
  Schedule s;
  const auto layer = s.add_block();
  s.add(layer, kernel(Phase::backward));
  s.add(layer, reduction(3));
  Schedule::Node node;
  node.is_block = true;
  node.index = layer;
  node.repeat = 3;
  s.add(0, node);
  s.add(0, wait_for_token(3));
  // Kernels end at 30; reductions run 10–40, 40–70, 70–100.
  EXPECT_DOUBLE_EQ(time_of(s, {compute(10), comm(30), {}}).end_us, 100);
}

TEST(Stage, ASlowHostSetsThePace) {
  Schedule s;
  const auto layer = s.add_block();
  s.add(layer, kernel());
  s.add(layer, kernel());
  Schedule::Node node;
  node.is_block = true;
  node.index = layer;
  node.repeat = 4;
  s.add(0, node);
  const StageTime time = time_of(s, {compute(10, 50), compute(20, 50)});
  EXPECT_DOUBLE_EQ(time.end_us, 4 * 100);
  EXPECT_DOUBLE_EQ(at(time.spent, Cause::compute), 4 * 30);
  EXPECT_DOUBLE_EQ(at(time.spent, Cause::launch), 4 * 70);
}

TEST(Stage, TheHostRunsAheadWhileTheGpuIsBusy) {
  // 100 µs of kernels give the host time to issue the next ones: only the rest is waited for.
  Schedule s;
  s.add(0, kernel());
  s.add(0, kernel());
  s.add(0, kernel());
  const StageTime time = time_of(s, {compute(100, 10), compute(1, 60), compute(1, 60)});
  EXPECT_DOUBLE_EQ(time.end_us, 130);
  EXPECT_DOUBLE_EQ(at(time.spent, Cause::launch), 28);
}

TEST(Stage, CollectivesSlowTheKernelsTheyOverlap) {
  Schedule s;
  s.add(0, reduction(3));
  s.add(0, kernel());
  s.add(0, wait_for_token(3));
  const std::vector<EntryCost> costs{comm(50), compute(100), {}};
  const StageTime time = run_pipeline({fold_stage(s, Layout{}, costs, 0, Overlap{.slowdown = 0.25})})[0];
  EXPECT_DOUBLE_EQ(time.end_us, 110);  // 50 µs of overlap with the collective do the work of 40
}

TEST(Stage, OperationsCompleteOneByOne) {
  // A layer waits for its own bucket, not for all pending ones.
  Schedule s;
  s.add(0, reduction(64));
  s.add(0, reduction(65));
  s.add(0, wait_for_token(64));
  s.add(0, kernel());
  s.add(0, wait_for_token(65));
  const StageTime time = time_of(s, {comm(30), comm(30), {}, compute(25), {}});
  EXPECT_DOUBLE_EQ(time.end_us, 60);
  EXPECT_DOUBLE_EQ(at(time.spent, Cause::dp), 35);
}

}  // namespace
}  // namespace medley::cost

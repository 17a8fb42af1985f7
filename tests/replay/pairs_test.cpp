// Replaying over a pair of libraries where some comms are placed so that it does not serve them.
#include <gtest/gtest.h>

#include "harness/two_hosts.hpp"
#include "replay/interleaved_rounds.hpp"
#include "replay/replayed_step.hpp"

namespace medley::replay {
namespace {

// Three ranks of two hosts have the shape of two and two, which a pair serves.
TEST(ReplayedStep, ACommThatAPairDoesNotServeTakesItsSecondLibrary) {
  Action all_reduce;
  all_reduce.op = Op::all_reduce, all_reduce.bytes = 4096, all_reduce.group = "three";
  WorldSchedule schedule;
  schedule.world = 4;
  for (int rank = 0; rank < 4; ++rank) {
    schedule.ranks.push_back({rank, {{"three", {0, 1, 2}}}, {}});
    if (rank < 3) schedule.ranks.back().actions = {all_reduce};
  }
  const std::vector<tune::StepOperation> operations = operations_of(schedule, {}, {0, 0, 1, 1});
  ASSERT_EQ(operations.size(), 1u);
  EXPECT_EQ(operations[0].shape, (route::Shape{2, 2}));
  EXPECT_FALSE(operations[0].in_blocks);
  const auto body = [&](Context& context) { InterleavedRounds(context, schedule, {}, {"shm+gloo"}, false).run(0); };
  if (!test::on_two_hosts({"shm", "gloo", "shm+gloo"}, body)) GTEST_SKIP() << "no namespaces or no network here";
}

}  // namespace
}  // namespace medley::replay

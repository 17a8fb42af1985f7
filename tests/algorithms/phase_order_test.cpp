// The order in which collectives use the stages of a hierarchical lane.
#include "algorithms/phase_order.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"

namespace medley::algorithms {
namespace {

TEST(PhaseOrder, ServesEachStageInIssueOrder) {
  PhaseOrder order;
  const auto first = order.add(), second = order.add();
  EXPECT_TRUE(order.may_start(first, Stage::enter));
  EXPECT_FALSE(order.may_start(second, Stage::enter));
  order.pass(first, Stage::enter);
  EXPECT_TRUE(order.may_start(second, Stage::enter));  // while the first is between hosts
  order.pass(second, Stage::enter);
  EXPECT_FALSE(order.may_start(second, Stage::between));
  order.pass(first, Stage::between);
  EXPECT_TRUE(order.may_start(second, Stage::between));
  EXPECT_FALSE(order.may_start(second, Stage::leave));
}

TEST(PhaseOrder, DoesNotWaitForStagesThatACollectiveLeavesOut) {
  PhaseOrder order;
  const auto gather = order.add(), sum = order.add();
  order.pass(gather, Stage::enter);  // an all_gather begins between hosts
  EXPECT_TRUE(order.may_start(sum, Stage::enter));
  EXPECT_FALSE(order.may_start(sum, Stage::between));
  order.end(gather);
  EXPECT_TRUE(order.may_start(sum, Stage::between));
  order.end(sum);
  const auto last = order.add();
  for (const Stage stage : {Stage::enter, Stage::between, Stage::leave}) EXPECT_TRUE(order.may_start(last, stage));
}

TEST(PhaseOrder, LetsACollectiveBeginWhenFewEarlierOnesHaveNotEnded) {
  PhaseOrder order;
  std::vector<PhaseOrder::Number> all;
  for (std::size_t i = 0; i <= most_under_way; ++i) all.push_back(order.add());
  EXPECT_TRUE(order.may_begin(all[most_under_way - 1]));
  EXPECT_FALSE(order.may_begin(all[most_under_way]));
  for (const Stage stage : {Stage::enter, Stage::between, Stage::leave}) order.pass(all[0], stage);
  EXPECT_FALSE(order.may_begin(all[most_under_way]));  // its last phase may still run
  order.end(all[1]);
  EXPECT_FALSE(order.may_begin(all[most_under_way]));
  order.end(all[0]);
  EXPECT_TRUE(order.may_begin(all[most_under_way]));
}

TEST(PhaseOrder, KeepsIssueOrderWhateverOrderCollectivesAreLookedAtIn) {
  core::Random random(1);
  PhaseOrder order;
  constexpr std::size_t collectives = 200;
  std::vector<std::size_t> stage(collectives, 0);  // the next one of each
  std::vector<std::vector<PhaseOrder::Number>> served(stages);
  for (std::size_t i = 0; i < collectives; ++i) order.add();
  for (std::size_t left = collectives * stages; left > 0;) {
    const auto number = static_cast<PhaseOrder::Number>(random.below(collectives));
    if (stage[number] == stages) continue;
    const auto next = static_cast<Stage>(stage[number]);
    if (!order.may_start(number, next)) continue;
    served[stage[number]].push_back(number);
    order.pass(number, next);
    ++stage[number], --left;
  }
  for (const auto& numbers : served) {
    for (PhaseOrder::Number i = 0; i < collectives; ++i) ASSERT_EQ(numbers[i], i);
  }
}

}  // namespace
}  // namespace medley::algorithms

// Pipelines whose step time has a closed form, which the simulator must match exactly.
#include "cost/run_pipeline.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley::cost {
namespace {

constexpr double forward_us = 100, backward_us = 200, move_us = 7;

StageItem work(StageProgram& program, double us) {
  Spent spent{};
  at(spent, Cause::compute) = us;
  program.spent.push_back(spent);
  StageItem item;
  item.block = static_cast<std::uint32_t>(program.spent.size() - 1);
  return item;
}

StageItem move(StageProgram& program, bool send, int stage, int token = 0) {
  StageItem item;
  item.type = StageItem::Type::transfer;
  item.token = token;
  item.first = static_cast<std::uint32_t>(program.transfers.size());
  program.transfers.push_back({.send = send, .stage = stage, .us = move_us});
  item.last = item.first + 1;
  return item;
}

void forward(StageProgram& p, int stage, int stages) {
  if (stage > 0) p.items.push_back(move(p, false, stage - 1));
  p.items.push_back(work(p, forward_us));
  if (stage < stages - 1) p.items.push_back(move(p, true, stage + 1));
}

void backward(StageProgram& p, int stage, int stages) {
  if (stage < stages - 1) p.items.push_back(move(p, false, stage + 1));
  p.items.push_back(work(p, backward_us));
  if (stage > 0) p.items.push_back(move(p, true, stage - 1));
}

/// GPipe: all forward passes, then all backward passes.
std::vector<StageProgram> gpipe(int stages, int micro_batches) {
  std::vector<StageProgram> programs(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) {
    StageProgram& p = programs[static_cast<std::size_t>(stage)];
    for (int i = 0; i < micro_batches; ++i) forward(p, stage, stages);
    for (int i = 0; i < micro_batches; ++i) backward(p, stage, stages);
  }
  return programs;
}

double sum(const Spent& spent) {
  double total = 0;
  for (const double us : spent) total += us;
  return total;
}

TEST(Pipeline, OneStageIsThePlainSum) {
  const auto times = run_pipeline(gpipe(1, 5));
  EXPECT_DOUBLE_EQ(times[0].end_us, 5 * (forward_us + backward_us));
  EXPECT_DOUBLE_EQ(at(times[0].spent, Cause::bubble), 0);
}

TEST(Pipeline, GpipeTakesMicroBatchesPlusStagesLessOne) {
  // With free transfers a GPipe step takes (m + p − 1)(f + b). Here every hop adds its transfer to the fill
  // and the drain, and a middle stage pays for receiving and sending each micro-batch.
  for (const int stages : {2, 3, 6}) {
    for (const int micro_batches : {1, 4, 9}) {
      std::vector<StageProgram> programs = gpipe(stages, micro_batches);
      for (StageProgram& p : programs) {
        for (Transfer& t : p.transfers) t.us = 0;
      }
      const auto times = run_pipeline(programs);
      EXPECT_DOUBLE_EQ(times[0].end_us, (micro_batches + stages - 1) * (forward_us + backward_us));
    }
  }
}

TEST(Pipeline, BreakdownSumsToTheEndOfEveryStage) {
  for (const StageTime& time : run_pipeline(gpipe(4, 6))) EXPECT_NEAR(sum(time.spent), time.end_us, 1e-9);
}

TEST(Pipeline, BlockingTransfersAreExposed) {
  const auto times = run_pipeline(gpipe(2, 1));
  // The first stage sends forward (7), waits for forward (100, 7 of which passed), backward (200) and the way
  // back (7).
  EXPECT_DOUBLE_EQ(times[0].end_us, 2 * (forward_us + backward_us) + 2 * move_us + 1 * 0);
  EXPECT_GT(at(times[0].spent, Cause::bubble), 0);
}

TEST(Pipeline, AsynchronousReceiveHidesBehindWork) {
  std::vector<StageProgram> p(2);
  p[0].items.push_back(move(p[0], true, 1, 1));
  p[1].items.push_back(move(p[1], false, 0, 5));
  p[1].items.push_back(work(p[1], forward_us));
  StageItem wait;
  wait.type = StageItem::Type::wait;
  wait.token = 5;
  p[1].items.push_back(wait);
  EXPECT_DOUBLE_EQ(run_pipeline(p)[1].end_us, forward_us);
}

TEST(Pipeline, CollectiveAcrossStagesWaitsForTheLast) {
  std::vector<StageProgram> p(3);
  StageItem meet;
  meet.type = StageItem::Type::meet;
  meet.cost = {.us = 11, .cause = Cause::sync, .link = group_index("model"), .across_stages = true};
  for (std::size_t i = 0; i < p.size(); ++i) {
    p[i].items.push_back(work(p[i], 50.0 * static_cast<double>(i + 1)));
    p[i].items.push_back(meet);
  }
  for (const StageTime& time : run_pipeline(p)) {
    EXPECT_DOUBLE_EQ(time.end_us, 161);
    EXPECT_DOUBLE_EQ(at(time.spent, Cause::sync), 11);
  }
}

TEST(Pipeline, EndlessWaitIsRefused) {
  std::vector<StageProgram> p(2);
  p[0].items.push_back(move(p[0], false, 1));
  p[1].items.push_back(move(p[1], false, 0));
  EXPECT_THROW(run_pipeline(p), Error);
}

}  // namespace
}  // namespace medley::cost

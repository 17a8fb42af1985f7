#include "cost/training_time.hpp"

#include <gtest/gtest.h>

#include "cost/plan_sweep.hpp"
#include "plan/helpers.hpp"

namespace medley::cost {
namespace {

using plan::refusal;

TEST(ParseTokens, ReadsPowersOfAThousand) {
  EXPECT_EQ(parse_tokens("300B", "--tokens"), 3e11);
  EXPECT_EQ(parse_tokens("1.5t", "--tokens"), 1.5e12);
  EXPECT_EQ(parse_tokens("2e12", "--tokens"), 2e12);
  EXPECT_EQ(tokens_text(3e11), "300B");
  EXPECT_EQ(tokens_text(1.5e12), "1.5T");
  for (const char* wrong : {"", "B", "many", "1X", "1TB", "0", "-3B", "inf", "nan", "1e400"})
    EXPECT_NE(refusal([&] { parse_tokens(wrong, "--tokens"); }).find("--tokens"), std::string::npos) << wrong;
}

TEST(TrainingTime, IsWholeStepsOnAllGpus) {
  Layout layout;
  layout.dp = 4;
  layout.global_batch = 100;
  layout.seq = 1000;
  const TrainingTime time = training_time(layout, 3.6e6, 1e6 + 1);  // steps of 100,000 tokens and 3.6 s
  EXPECT_EQ(time.steps, 11);
  EXPECT_DOUBLE_EQ(time.days * 24, 11 * 0.001);
  EXPECT_DOUBLE_EQ(time.gpu_hours, 4 * 11 * 0.001);
  layout.mode = Mode::prefill;
  EXPECT_NE(refusal([&] { training_time(layout, 1, 1); }).find("training"), std::string::npos);
}

TEST(TrainingTime, PlansAndSweepsHaveItWhereTokensAreGiven) {
  SweepRequest request;
  request.model = "pythia-70m";
  request.layout = "dp=2,global_batch=8";
  request.axes = {{"micro_batch", {"1"}}};
  request.tokens = 1e9;
  EXPECT_NE(refusal([&] { make_plan(request); }).find("--machine"), std::string::npos);
  EXPECT_NE(refusal([&] { sweep_plans(request); }).find("--machine"), std::string::npos);
  request.machine = "dgx-a100";
  const PlanResult plan = make_plan(request);
  ASSERT_TRUE(plan.time->training);
  EXPECT_NEAR(plan.time->training->gpu_hours, 1e9 / plan.time->cost.tokens_per_s_per_gpu / 3600, 1e-3);
  EXPECT_EQ(to_json(plan)["training"]["tokens"], 1e9);
  EXPECT_EQ(sweep_plans(request).points.at(0).time->training->days, plan.time->training->days);
  request.tokens = 0;
  EXPECT_FALSE(to_json(make_plan(request)).contains("training"));
}

}  // namespace
}  // namespace medley::cost

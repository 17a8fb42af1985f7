#include "cost/plan_sweep.hpp"

#include <gtest/gtest.h>

#include "plan/helpers.hpp"

namespace medley::cost {
namespace {

using plan::refusal;
using Values = std::vector<std::string>;

SweepRequest sweep_of(std::vector<SweepAxis> axes) {
  SweepRequest request;
  request.model = "pythia-70m";
  request.axes = std::move(axes);
  return request;
}

TEST(ParseAxis, ReadsListsDoublingsAndSteps) {
  EXPECT_EQ(parse_axis("seq=512:4096").values, (Values{"512", "1024", "2048", "4096"}));
  EXPECT_EQ(parse_axis("layers=2:8:3").values, (Values{"2", "5", "8"}));
  EXPECT_EQ(parse_axis("Micro_Batch=1,4").key, parse_axis("micro-batch=1").key);
  EXPECT_EQ(parse_axis("model=gpt2,gpt2-xl").values, (Values{"gpt2", "gpt2-xl"}));
  for (const char* wrong : {"seq", "seq=", "seq=5:1", "seq=0:4", "seq=1:2:3:4", "seq=1:4:-1"})
    EXPECT_NE(refusal([&] { parse_axis(wrong); }), "") << wrong;
}

TEST(SweepPlans, IsAGridWhoseLastAxisRunsFastest) {
  const SweepResult result = sweep_plans(sweep_of({{"layers", {"2", "4"}}, {"seq", {"128", "256", "512"}}}));
  ASSERT_EQ(result.points.size(), 6u);
  EXPECT_EQ(result.points[1].values, (Values{"2", "256"}));
  EXPECT_EQ(result.points[3].values, (Values{"4", "128"}));
  EXPECT_LT(result.points[0].parameters, result.points[3].parameters);
  EXPECT_EQ(to_json(result)["points"][3]["layers"], "4");
}

TEST(SweepPlans, APointEqualsItsPlan) {
  SweepRequest request = sweep_of({{"seq", {"256"}}});
  request.layout = "dp=2,tp=2";
  request.framework = "megatron";
  request.machine = "dgx-a100";
  const SweepPoint point = sweep_plans(request).points.at(0);
  PlanRequest single = request;
  single.seq = 256;
  const PlanResult plan = make_plan(single);
  EXPECT_EQ(point.rank, plan.rank);
  EXPECT_EQ(point.volume.all.wire_bytes, plan.volume.all.wire_bytes);
  EXPECT_EQ(point.memory.total(), plan.memory.total());
  EXPECT_EQ(point.time->cost.step_us, plan.time->cost.step_us);
}

TEST(SweepPlans, TheNumberOfRanksStaysWhereTheLayoutGivesIt) {
  SweepRequest request = sweep_of({{"tp", {"1", "2", "8", "3"}}});
  request.layout = "world=32,zero=1";
  request.framework = "megatron";
  const SweepResult result = sweep_plans(request);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(result.points[i].world, 32);
  EXPECT_NE(result.points[3].refused.find("world 32 is not a multiple of tp·pp·cp = 3"), std::string::npos);
  request.axes = {{"world", {"8", "64"}}};
  request.layout = "tp=4";
  EXPECT_EQ(sweep_plans(request).points[1].world, 64);
  request.layout = "dp=2,tp=4";
  EXPECT_NE(sweep_plans(request).points[1].refused.find("world 64 contradicts dp 2"), std::string::npos);
}

TEST(SweepPlans, TheFastestPointFits) {
  SweepRequest request = sweep_of({{"tp", {"1", "2", "4"}}, {"micro_batch", {"1", "32"}}});
  request.model = "llama-2-7b";
  request.layout = "world=8,zero=1,global_batch=256";
  request.framework = "megatron";
  EXPECT_FALSE(sweep_plans(request).fastest);  // without a machine there is no time
  request.machine = "dgx-a100";
  const SweepResult result = sweep_plans(request);
  ASSERT_TRUE(result.fastest);
  const SweepPoint& fastest = result.points[*result.fastest];
  EXPECT_TRUE(fastest.time->fits);
  bool some_do_not_fit = false;
  for (const SweepPoint& p : result.points) {
    if (!p.time) continue;
    some_do_not_fit |= !p.time->fits;
    EXPECT_TRUE(!p.time->fits || p.time->cost.step_us >= fastest.time->cost.step_us);
  }
  EXPECT_TRUE(some_do_not_fit);
  EXPECT_EQ(to_json(result)["fastest"], *result.fastest);
  request.axes = {{"model", {"pythia-70m", "llama-2-7b"}}};
  EXPECT_FALSE(sweep_plans(request).fastest);  // a smaller model is not a faster layout
}

TEST(SweepPlans, WidthsFollowTheHiddenSize) {
  const SweepResult result = sweep_plans(sweep_of({{"hidden", {"512", "1024"}}}));
  const Model wide = [] {
    Model m = *model::model_from_zoo("pythia-70m");
    Layout layout;
    set_swept(m, layout, "hidden", "1024");
    return m;
  }();
  EXPECT_EQ(wide.ffn, 4096);
  EXPECT_EQ(wide.head_dim, 128);
  EXPECT_EQ(result.points[1].parameters, plan::count_parameters(wide).total);
}

TEST(SweepPlans, AnImpossiblePointSaysWhyAndAnUnknownKeyThrows) {
  const SweepResult result = sweep_plans(sweep_of({{"tp", {"1", "3"}}}));
  EXPECT_EQ(result.points[0].refused, "");
  EXPECT_NE(result.points[1].refused.find("tp 3"), std::string::npos);
  EXPECT_TRUE(to_json(result)["points"][1].contains("refused"));
  EXPECT_NE(refusal([] { sweep_plans(sweep_of({{"colour", {"1"}}})); }).find("colour"), std::string::npos);
  EXPECT_NE(refusal([] { sweep_plans(sweep_of({{"seq", {}}})); }).find("seq"), std::string::npos);
  const SweepAxis many = parse_axis("seq=1:1000:1");
  EXPECT_NE(refusal([&] { sweep_plans(sweep_of({many, many})); }).find("at most 200000"), std::string::npos);
}

}  // namespace
}  // namespace medley::cost

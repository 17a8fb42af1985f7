#include "cost/plan_step.hpp"

#include <gtest/gtest.h>

#include "plan/helpers.hpp"

namespace medley::cost {
namespace {

using plan::refusal;

PlanRequest request_for(const std::string& model, const std::string& layout, const std::string& framework) {
  PlanRequest request;
  request.model = model;
  request.layout = layout;
  request.framework = framework;
  return request;
}

TEST(MakePlan, WithoutAMachineThereIsNoTime) {
  const PlanResult result = make_plan(request_for("pythia-70m", "dp=2", "textbook"));
  EXPECT_FALSE(result.time);
  EXPECT_TRUE(result.fits());
  EXPECT_TRUE(result.textbook.empty());
  EXPECT_FALSE(to_json(result).contains("step_us"));
  EXPECT_EQ(to_json(result)["total"]["count"], result.volume.all.count);
}

TEST(MakePlan, AMachineAddsTimeAndWhetherItFits) {
  PlanRequest request = request_for("gpt3-175b", "dp=8", "megatron");
  request.machine = "dgx-a100";
  const PlanResult result = make_plan(request);
  ASSERT_TRUE(result.time);
  EXPECT_FALSE(result.fits());
  EXPECT_NE(misfit_text(result).find("dgx-a100"), std::string::npos);
  EXPECT_GT(result.time->cost.step_us, 0);
  EXPECT_DOUBLE_EQ(result.time->gpu_bytes, 80.0 * 1024 * 1024 * 1024);  // a datasheet's GB is a GiB
  const auto json = to_json(result);
  EXPECT_EQ(json["fits"], false);
  double spent = 0;
  for (const auto& [cause, us] : json["breakdown"].items()) spent += us.get<double>();
  EXPECT_NEAR(spent, result.time->cost.step_us, 1e-6 * result.time->cost.step_us);
}

TEST(MakePlan, TheTextbookIsBesideWhatAFrameworkSends) {
  const PlanResult result = make_plan(request_for("pythia-70m", "dp=2,tp=2", "megatron"));
  EXPECT_GT(result.textbook.at("tp"), 0);
  double shared = 0;
  for (const auto& [group, bytes] : result.textbook)
    if (result.volume.by_group.contains(group)) shared += bytes;
  EXPECT_DOUBLE_EQ(result.textbook_bytes, shared);
}

TEST(MakePlan, PlansTheRankAskedForAndRefusesOthers) {
  PlanRequest request = request_for("pythia-70m", "pp=2,global_batch=4", "megatron");
  request.rank = 1;
  EXPECT_EQ(make_plan(request).rank, 1);
  request.rank = 9;
  EXPECT_NE(refusal([&] { make_plan(request); }).find("rank 9"), std::string::npos);
  request.rank = -1;
  EXPECT_NE(refusal([&] { make_plan(request); }).find("--rank is -1"), std::string::npos);
}

TEST(PlanSchedules, OneRankCarriesItsRequestAndAllRanksAreListed) {
  PlanRequest request = request_for("pythia-70m", "pp=2,global_batch=4", "megatron");
  request.micro_batch = 1;
  request.machine = "dgx-a100";
  const PlanResult result = make_plan(request);
  const auto one = schedule_json(request, result);
  EXPECT_EQ(one["plan"]["model"], "pythia-70m");
  EXPECT_EQ(one["plan"]["micro_batch"], "1");
  EXPECT_EQ(one["plan"]["seq"], "");
  const auto all = all_schedules_json(result);
  ASSERT_EQ(all["ranks"].size(), 2u);
  EXPECT_EQ(all["ranks"][static_cast<std::size_t>(result.rank)]["entries"], one["entries"]);
}

TEST(PlanSchedules, RefusesToListTooManyRanks) {
  const PlanRequest request = request_for("pythia-70m", "dp=2048", "ddp");
  EXPECT_NE(refusal([&] { all_schedules_json(make_plan(request)); }).find("at most 1024"), std::string::npos);
}

}  // namespace
}  // namespace medley::cost

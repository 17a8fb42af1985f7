#include "cost/layout_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/read_layout.hpp"
#include "plan/helpers.hpp"

namespace medley::cost {
namespace {

using plan::refusal;
using Values = std::vector<std::string>;

LayoutSearchRequest search_for(const std::string& model, Count gpus) {
  LayoutSearchRequest request;
  request.model = model;
  request.framework = "megatron";
  request.machine = "dgx-a100";
  request.global_batch = 32;
  request.gpus = gpus;
  return request;
}

const SweepAxis* axis_of(const LayoutSearchResult& result, const std::string& key) {
  const auto found = std::ranges::find(result.axes, key, &SweepAxis::key);
  return found == result.axes.end() ? nullptr : &*found;
}

TEST(SearchLayouts, TheFastestThatFitsComesFirstAndEqualsItsPlan) {
  const LayoutSearchRequest request = search_for("llama-2-7b", 8);
  const LayoutSearchResult result = search_layouts(request);
  ASSERT_EQ(result.layouts.size(), request.most);
  EXPECT_GT(result.too_large, 0u);
  EXPECT_GT(result.impossible, 0u);
  for (std::size_t i = 0; i < result.layouts.size(); ++i) {
    EXPECT_TRUE(result.layouts[i].time.fits);
    EXPECT_EQ(result.layouts[i].layout.world(), 8);
    if (i > 0) {
      EXPECT_GE(result.layouts[i].time.cost.step_us, result.layouts[i - 1].time.cost.step_us);
    }
  }
  PlanRequest plan = request;
  plan.layout = plan::layout_text(result.layouts[0].layout);
  plan.micro_batch = result.layouts[0].layout.micro_batch;
  EXPECT_EQ(make_plan(plan).time->cost.step_us, result.layouts[0].time.cost.step_us);
  EXPECT_EQ(to_json(result)["layouts"][0]["layout"], plan.layout);
}

TEST(SearchLayouts, WhatTheLayoutSaysStaysAndWhatASweepSaysIsTried) {
  LayoutSearchRequest request = search_for("llama-2-7b", 8);
  request.layout = "pp=1,zero=1,recompute=full";
  request.micro_batch = 2;
  request.axes = {{"tp", {"4", "8"}}, {"cp", {"1", "2"}}};
  const LayoutSearchResult result = search_layouts(request);
  for (const char* fixed : {"pp", "zero", "recompute", "micro_batch"})
    EXPECT_EQ(axis_of(result, fixed), nullptr) << fixed;
  ASSERT_NE(axis_of(result, "tp"), nullptr);
  EXPECT_EQ(axis_of(result, "tp")->values, (Values{"4", "8"}));
  EXPECT_NE(axis_of(result, "cp"), nullptr);
  for (const FoundLayout& found : result.layouts) {
    EXPECT_EQ(found.layout.pp, 1);
    EXPECT_EQ(found.layout.micro_batch, 2);
    EXPECT_EQ(found.layout.recompute, Recompute::full);
  }
}

TEST(SearchLayouts, ExpertsAreSpreadAndDataParallelFrameworksVaryNothingElse) {
  LayoutSearchRequest request = search_for("mixtral-8x7b", 16);
  request.layout = "recompute=full,vp=1,zero=1";
  request.micro_batch = 1;
  const LayoutSearchResult experts = search_layouts(request);
  EXPECT_EQ(axis_of(experts, "ep")->values, (Values{"1", "2", "4", "8"}));
  ASSERT_FALSE(experts.layouts.empty());
  request = search_for("pythia-70m", 8);
  request.framework = "ddp";
  const LayoutSearchResult ddp = search_layouts(request);
  EXPECT_EQ(axis_of(ddp, "tp"), nullptr);
  EXPECT_EQ(ddp.layouts.front().layout.dp, 8);
}

TEST(SearchLayouts, WhereNoneFitsTheNearestIsNamed) {
  const LayoutSearchResult result = search_layouts(search_for("gpt3-175b", 8));
  EXPECT_TRUE(result.layouts.empty());
  EXPECT_NE(result.nearest.find("too much"), std::string::npos);
}

TEST(SearchLayouts, WithoutABatchAllLayoutsTakeSomeFourMillionTokens) {
  LayoutSearchRequest request = search_for("pythia-70m", 24);
  request.global_batch = 0;
  const LayoutSearchResult result = search_layouts(request);
  EXPECT_TRUE(result.assumed_batch);
  EXPECT_EQ(result.global_batch % 24, 0);
  EXPECT_NEAR(static_cast<double>(result.global_batch * result.model.seq), 4 << 20, 24.0 * 2048);
}

TEST(SearchLayouts, RequestsThatCannotBeComparedAreRefused) {
  const auto sentence = [](auto change) {
    LayoutSearchRequest request = search_for("pythia-70m", 8);
    change(request);
    return refusal([&] { search_layouts(request); });
  };
  EXPECT_NE(sentence([](auto& r) { r.gpus = 0; }).find("--gpus"), std::string::npos);
  EXPECT_NE(sentence([](auto& r) { r.machine.clear(); }).find("--machine"), std::string::npos);
  EXPECT_NE(sentence([](auto& r) { r.layout = "world=32"; }).find("--gpus 8 contradicts world 32"), std::string::npos);
  EXPECT_NE(sentence([](auto& r) { r.axes = {{"hidden", {"512"}}}; }).find("hidden"), std::string::npos);
}

}  // namespace
}  // namespace medley::cost

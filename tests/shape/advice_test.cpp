#include "shape/advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

const Advice* about(const std::vector<Advice>& advice, Knob knob) {
  const auto found = std::ranges::find_if(advice, [&](const Advice& a) { return a.change.knob == knob; });
  return found == advice.end() ? nullptr : &*found;
}

TEST(Advice, PadsAnOddVocabularyAndSaysWhy) {
  const Model m = zoo_model("gpt2-xl");
  Pricer pricer(GpuModel::named("h200-sxm"));
  const auto advice = advise(pricer, m, workload(m, {.micro_batch = 8}));
  const Advice* vocabulary = about(advice, Knob::vocabulary);
  ASSERT_NE(vocabulary, nullptr);
  EXPECT_EQ(vocabulary->rule, 1);
  EXPECT_EQ(vocabulary->change.was, 50257);
  EXPECT_EQ(vocabulary->change.now % 8, 0);
  EXPECT_LE(vocabulary->change.now, 50304);
  EXPECT_GT(vocabulary->gain, 0.03);
  EXPECT_NE(vocabulary->why.find("alignment"), std::string::npos) << vocabulary->why;
}

TEST(Advice, LeavesAGoodVocabularyAlone) {
  const Model m = zoo_model("pythia-1.4b");
  Pricer pricer(GpuModel::named("h200-sxm"));
  EXPECT_EQ(about(advise(pricer, m, workload(m, {.micro_batch = 4})), Knob::vocabulary), nullptr);
}

TEST(Advice, RepairsAnOddGatedWidth) {
  Model m = zoo_model("llama-2-7b");
  m.ffn = 10922;  // 8h/3, unrounded
  Pricer pricer(GpuModel::named("h200-sxm"));
  const auto advice = advise(pricer, m, workload(m, {.micro_batch = 2}));
  const Advice* width = about(advice, Knob::ffn);
  ASSERT_NE(width, nullptr);
  EXPECT_EQ(width->rule, 6);
  EXPECT_EQ(width->change.now % 8, 0);
  EXPECT_NEAR(double(width->change.now), 10922, 330);
  EXPECT_GT(width->net_gain(), 0.1);
}

TEST(Advice, IsSortedAndWorthItsWhile) {
  for (const char* name : {"gpt3-760m", "gpt-neox-20b", "mixtral-8x7b"}) {
    const Model m = zoo_model(name);
    Pricer pricer(GpuModel::named("h200-sxm"));
    const auto advice = advise(pricer, m, workload(m, {.micro_batch = 1, .tp = 4, .seq = 2048}));
    EXPECT_TRUE(std::ranges::is_sorted(advice, std::greater{}, &Advice::net_gain)) << name;
    for (const auto& a : advice) {
      EXPECT_GE(a.net_gain(), AdviceLimits{}.worthwhile) << name;
      EXPECT_FALSE(a.why.empty()) << name;
    }
  }
}

TEST(Advice, CombinedIsAtLeastTheBestOfTheModelsOwn) {
  const Model m = zoo_model("gpt2-xl");
  const Workload w = workload(m, {.micro_batch = 8});
  Pricer pricer(GpuModel::named("h200-sxm"));
  const auto advice = advise(pricer, m, w);
  const CombinedAdvice combined = apply(pricer, m, w, advice);
  double best = 0;
  for (const auto& a : advice)
    if (a.change.knob != Knob::micro_batch && a.change.knob != Knob::tensor_parallel)
      best = std::max(best, a.net_gain());
  EXPECT_GE((1 + combined.gain) * (1 + combined.parameters) - 1, best - 1e-9);
}

}  // namespace
}  // namespace medley::shape

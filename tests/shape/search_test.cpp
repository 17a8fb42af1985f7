#include "shape/search.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <medley/error.hpp>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

TEST(Search, StaysWithinItsBounds) {
  const Model m = zoo_model("gpt3-2.7b");
  const Workload w = workload(m, {.micro_batch = 4, .tp = 2, .pp = 2});
  Bounds bounds;
  bounds.parameters = 0.01;
  bounds.ffn_step = 64;
  const auto result = search(GpuModel::named("h200-sxm"), m, w, bounds);
  ASSERT_GT(result.candidates, 100);
  for (const auto& c : result.pareto) {
    EXPECT_LE(std::abs(c.parameters), 0.0101);
    EXPECT_LE(std::abs(double(c.layers) / double(m.layers) - 1), bounds.depth + 1e-9);
    EXPECT_LE(std::abs(double(c.hidden) / double(c.layers) / (2560.0 / 32) - 1), bounds.aspect + 1e-9);
    EXPECT_EQ(c.heads % 2, 0);
    EXPECT_EQ(c.layers % 2, 0);
    EXPECT_EQ(c.heads * c.head_dim, c.hidden);
  }
}

TEST(Search, ParetoListGetsFasterAsItGoesFurther) {
  const Model m = zoo_model("gpt3-760m");
  const auto result = search(GpuModel::named("h200-sxm"), m, workload(m, {.micro_batch = 4}), {});
  ASSERT_GT(result.pareto.size(), 1u);
  for (std::size_t i = 1; i < result.pareto.size(); ++i) {
    EXPECT_GE(std::abs(result.pareto[i].parameters), std::abs(result.pareto[i - 1].parameters));
    EXPECT_GT(result.pareto[i].gain, result.pareto[i - 1].gain);
  }
  EXPECT_GE(result.fastest.gain, result.pareto.back().gain);
}

TEST(Search, DoesNotDependOnThreads) {
  const Model m = zoo_model("llama-2-7b");
  const Workload w = workload(m, {.tp = 2});
  const GpuModel gpu = GpuModel::named("h200-sxm");
  const auto one = search(gpu, m, w, {}, 1), three = search(gpu, m, w, {}, 3);
  EXPECT_EQ(one.candidates, three.candidates);
  ASSERT_EQ(one.pareto.size(), three.pareto.size());
  for (std::size_t i = 0; i < one.pareto.size(); ++i) {
    EXPECT_EQ(one.pareto[i].ffn, three.pareto[i].ffn);
    EXPECT_EQ(one.pareto[i].heads, three.pareto[i].heads);
    EXPECT_EQ(one.pareto[i].gain, three.pareto[i].gain);
  }
}

TEST(Search, CandidatesCanBePricedAgain) {
  const Model m = zoo_model("mixtral-8x7b");
  const Workload w = workload(m, {.tp = 4, .seq = 2048});
  const GpuModel gpu = GpuModel::named("h200-sxm");
  const auto result = search(gpu, m, w, {.parameters = 0.05, .ffn_step = 64});
  Pricer pricer(gpu);
  const double base = step_time(pricer, m, w).tokens_per_s;
  for (const auto& c : result.pareto)
    EXPECT_NEAR(step_time(pricer, with(m, c), w).tokens_per_s / base - 1, c.gain, 0.02) << c.hidden;
}

TEST(Search, RefusesAStepOfZero) {
  const Model m = zoo_model("gpt2");
  Bounds bounds;
  bounds.ffn_step = 0;
  EXPECT_THROW(search(GpuModel::named("h200-sxm"), m, workload(m, {}), bounds), Error);
}

TEST(Search, ParetoOfKeepsOnlyTheUnbeaten) {
  const auto kept = pareto_of({{.gain = 0.1, .parameters = 0.02},
                               {.gain = 0.2, .parameters = -0.01},
                               {.gain = 0.0, .parameters = 0.0},
                               {.gain = 0.3, .parameters = 0.05}});
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[0].gain, 0.0);
  EXPECT_EQ(kept[1].gain, 0.2);
  EXPECT_EQ(kept[2].gain, 0.3);
}

}  // namespace
}  // namespace medley::shape

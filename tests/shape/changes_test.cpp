#include "shape/changes.hpp"

#include <gtest/gtest.h>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

TEST(Changes, VocabularyIsPaddedUpForEveryRank) {
  const Model m = zoo_model("gpt2");
  std::vector<Count> widths;
  for (const auto& change : vocabulary_changes(m, workload(m, {.tp = 2}))) widths.push_back(change.now);
  EXPECT_EQ(widths, (std::vector<Count>{50272, 50304, 50432}));
  const Model padded = zoo_model("pythia-410m");  // 50304 is a multiple of 128
  EXPECT_TRUE(vocabulary_changes(padded, workload(padded, {})).empty());
}

TEST(Changes, HeadsLeaveTheParametersAlone) {
  for (const char* name : {"gpt3-2.7b", "gpt-neox-20b", "llama-3-8b"}) {
    const Model m = zoo_model(name);
    const auto changes = head_changes(m, workload(m, {.tp = 2}));
    EXPECT_FALSE(changes.empty()) << name;
    for (const auto& change : changes) {
      EXPECT_EQ(plan::count_parameters(change.model).total, plan::count_parameters(m).total) << name;
      EXPECT_EQ(change.now % 2, 0);
      EXPECT_EQ(change.model.heads * change.model.head_dim, m.heads * m.head_dim);
    }
  }
}

TEST(Changes, HeadWidthThatWasGivenIsNotDerivedAgain) {
  const Model m = zoo_model("qwen3-4b");  // 32 heads of 128 on hidden 2560
  for (const auto& change : hidden_changes(m, workload(m, {}), 0.05)) {
    EXPECT_EQ(change.model.heads, m.heads);
    EXPECT_EQ(change.model.head_dim, m.head_dim);
  }
}

TEST(Changes, WidthsStayNearAndAligned) {
  const Model m = zoo_model("llama-2-7b");
  const auto changes = ffn_changes(m, workload(m, {.tp = 4}), 0.02);
  ASSERT_FALSE(changes.empty());
  for (const auto& change : changes) {
    EXPECT_EQ(change.now % 32, 0);
    EXPECT_NEAR(double(change.now), 11008, 0.02 * 11008);
    EXPECT_NE(change.now, 11008);
  }
}

TEST(Changes, HiddenCarriesTheMlpWithIt) {
  const Model m = zoo_model("falcon-7b");
  bool found = false;
  for (const auto& change : hidden_changes(m, workload(m, {}), 0.03))
    if (change.now == 4608) found = change.model.heads == 72 && change.model.ffn == 18432;
  EXPECT_TRUE(found);
}

TEST(Changes, LayersGoToTheNearestMultiplesOfThePipeline) {
  const Model m = zoo_model("bloom-176b");
  std::vector<Count> depths;
  for (const auto& change : layer_changes(m, workload(m, {.tp = 8, .pp = 4}))) depths.push_back(change.now);
  EXPECT_EQ(depths, (std::vector<Count>{68, 72}));
  EXPECT_TRUE(layer_changes(m, workload(m, {.tp = 8, .pp = 7})).empty());
}

TEST(Changes, SmallerTensorParallelismDividesTheGivenOne) {
  const Model m = zoo_model("llama-2-7b");
  std::vector<Count> sizes;
  for (const auto& change : tensor_parallel_changes(m, workload(m, {.tp = 8}))) sizes.push_back(change.now);
  EXPECT_EQ(sizes, (std::vector<Count>{4, 2, 1}));
}

}  // namespace
}  // namespace medley::shape

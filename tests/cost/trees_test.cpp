#include "cost/trees.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

namespace medley::cost {
namespace {

struct Data {
  std::vector<float> rows;
  std::vector<double> targets;
};

/// A step in one feature and a slope in another, on a grid.
Data staircase() {
  Data data;
  for (int i = 0; i < 60; ++i)
    for (int j = 0; j < 60; ++j) {
      data.rows.push_back(float(i));
      data.rows.push_back(float(j) / 60);
      data.targets.push_back((i % 8 == 0 ? 0.5 : 0.0) + 0.3 * j / 60);
    }
  return data;
}

TEST(Trees, LearnAStepAndASlope) {
  const Data data = staircase();
  const Trees trees = Trees::fit(data.rows, 2, data.targets, {.trees = 400});
  double error = 0;
  for (std::size_t r = 0; r < data.targets.size(); ++r)
    error += std::abs(trees.predict({&data.rows[2 * r], 2}) - data.targets[r]) / double(data.targets.size());
  EXPECT_LT(error, 0.01);  // a constant would be off by 0.13 on average
}

TEST(Trees, SurviveJsonToTheLastBit) {
  const Data data = staircase();
  const Trees trees = Trees::fit(data.rows, 2, data.targets, {.trees = 20});
  const Trees read = Trees::from_json(nlohmann::json::parse(trees.to_json().dump()));
  for (std::size_t r = 0; r < data.targets.size(); r += 7)
    EXPECT_EQ(trees.predict({&data.rows[2 * r], 2}), read.predict({&data.rows[2 * r], 2}));
}

TEST(Trees, MalformedOnesAreRefused) {
  EXPECT_THROW(Trees::from_json(nlohmann::json::parse("[[0, 9, 0.5, -1, 1.0]]")),
               Error);  // right child missing
  EXPECT_THROW(Trees::from_json(nlohmann::json::parse("[[]]")), Error);
}

}  // namespace
}  // namespace medley::cost

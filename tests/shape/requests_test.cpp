// The functions behind `medley shape` and its subcommands, from request to result and JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <medley/error.hpp>

#include "shape/compare.hpp"
#include "shape/lint_config.hpp"
#include "shape/report.hpp"
#include "shape/search_shapes.hpp"

namespace medley::shape {
namespace {

ShapeRequest request_for(const std::string& model, const std::string& gpu) {
  ShapeRequest request;
  request.model = model;
  request.gpu = gpu;
  return request;
}

template <typename Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ShapeRequest, WordsBecomeALayoutOrAnErrorThatNamesThem) {
  ShapeRequest request = request_for("gpt2-xl", "h200-sxm");
  request.dtype = "fp8";
  request.recompute = "full";
  request.framework = "megatron";
  request.mode = "prefill";
  const Workload work = unchecked_workload(request);
  EXPECT_TRUE(work.layout.flags.fp8);
  EXPECT_EQ(work.layout.recompute, plan::Recompute::full);
  EXPECT_EQ(work.framework, Framework::megatron);
  EXPECT_EQ(work.layout.mode, Mode::prefill);
  request.recompute = "some";
  EXPECT_NE(refusal([&] { unchecked_workload(request); }).find("--recompute some"), std::string::npos);
  request.recompute = "none";
  request.framework = "caffe";
  EXPECT_NE(refusal([&] { unchecked_workload(request); }).find("--framework 'caffe'"), std::string::npos);
  EXPECT_NE(refusal([] { shape_model(""); }).find("--model"), std::string::npos);
}

TEST(ShapeReport, FiguresAgreeWithEachOther) {
  ShapeRequest request = request_for("gpt2-xl", "h200-sxm");
  request.micro_batch = 4;
  const ShapeReport report = report_shape(request);
  double lost = 0;
  for (const auto& [cause, us] : report.lost) lost += us;
  EXPECT_GT(lost, 0);
  EXPECT_LT(lost, report.products_us);
  EXPECT_GT(report.parameters, 1'500'000'000);
  EXPECT_LE(report.memory, report.usable_memory);
  EXPECT_GE(report.largest_micro_batch, 4);
  for (const PricedOperator& p : report.operators) EXPECT_LE(p.efficiency, 1) << p.op.label();
  ASSERT_FALSE(report.advice.empty());
  const auto json = to_json(report);
  EXPECT_EQ(json["gemms"].size() + json["others"].size(), report.operators.size());
  EXPECT_TRUE(json["advice"][0]["gain"].is_number());
}

TEST(ShapeReport, AnUncalibratedGpuGivesWordsInsteadOfPercentages) {
  const auto json = to_json(report_shape(request_for("gpt2-xl", "v100-sxm2")));
  EXPECT_EQ(json["calibrated"], false);
  for (const auto& advice : json["advice"]) EXPECT_TRUE(advice["gain"].is_null());
}

TEST(CompareShapes, RowsAreAgainstTheFirstThatIsPossible) {
  CompareRequest request;
  request.models = {"gpt2-xl", "pythia-2.8b"};
  request.gpus = {"h100-sxm", "h200-sxm"};
  request.tp = 2;  // 25 heads of gpt2-xl cannot be split
  const CompareResult result = compare_shapes(request);
  ASSERT_EQ(result.rows.size(), 4u);
  EXPECT_FALSE(result.rows[0].step);
  EXPECT_NE(result.rows[0].refused, "");
  EXPECT_EQ(result.rows[2].against_first, 1);
  EXPECT_GT(result.rows[3].against_first, 0);
  EXPECT_TRUE(to_json(result)["rows"][0].contains("refused"));
  request.models = {"gpt2-xl"};
  EXPECT_NE(refusal([&] { compare_shapes(request); }).find("tp 2"), std::string::npos);
  request.gpus.clear();
  EXPECT_NE(refusal([&] { compare_shapes(request); }).find("--gpu"), std::string::npos);
}

TEST(CompareShapes, CommasSeparateModelsButNotTheNumbersOfOne) {
  CompareRequest request;
  request.models = {"gpt2,gpt2-xl", "h=1024,a=16,layers=2,vocab=50304,seq=1024"};
  request.gpus = {"h200-sxm"};
  const CompareResult result = compare_shapes(request);
  ASSERT_EQ(result.rows.size(), 3u);
  EXPECT_EQ(result.rows[1].model, "gpt2-xl");
  request.models = {"gpt2,gpt9"};
  EXPECT_NE(refusal([&] { compare_shapes(request); }).find("'gpt9'"), std::string::npos);
}

TEST(LintConfig, AssumesTheMicroBatchOfShapeAndNamesTheFilesOwnKey) {
  const auto path = std::filesystem::path(testing::TempDir()) / "medley_lint.json";
  std::ofstream(path) << R"({"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48,
                             "vocab_size": 50257, "n_positions": 1024})";
  LintRequest request;
  request.model = path.string();
  request.gpu = "h200-sxm";
  request.allow = 0.02;
  const LintResult result = lint_config(request);
  std::filesystem::remove(path);
  EXPECT_EQ(result.layout.seq, 1024);
  EXPECT_EQ(result.layout.micro_batch, ShapeRequest{}.micro_batch);
  ASSERT_FALSE(result.findings.empty());
  const auto vocabulary = std::ranges::find(result.findings, "vocab_size", &Finding::key);
  ASSERT_NE(vocabulary, result.findings.end());
  EXPECT_NE(sentence(result, *vocabulary).find("vocab_size 50257 wastes"), std::string::npos);
  EXPECT_EQ(to_json(result)["findings"].size(), result.findings.size());
}

TEST(SearchShapes, CarriesItsBoundsAndTheGivenModel) {
  SearchRequest request;
  static_cast<ShapeRequest&>(request) = request_for("gpt2-xl", "h200-sxm");
  request.bounds.parameters = 0.01;
  request.bounds.hidden_step = 128;
  request.bounds.depth = 0.05;
  const SearchReport report = search_shapes(request);
  EXPECT_EQ(report.found.given.hidden, 1600);
  EXPECT_GT(report.found.candidates, 0);
  const auto json = to_json(report);
  EXPECT_EQ(json["bounds"]["parameters"], 0.01);
  EXPECT_EQ(json["pareto"].size(), report.found.pareto.size());
}

}  // namespace
}  // namespace medley::shape

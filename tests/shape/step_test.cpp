#include "shape/step.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

Step step_of(const Model& model, const Given& given) {
  Pricer pricer(GpuModel::named("h200-sxm"));
  return step_time(pricer, model, workload(model, given));
}

TEST(Step, IsItsLayersHeadAndOptimizerAndWhatComesOnce) {
  const Model m = zoo_model("gpt3-2.7b");
  const Step s = step_of(m, {.micro_batch = 8});
  const double blocks = s.layer_us * double(m.layers) + s.embedding.us() + s.head.us();
  const double once = cost::find_machine("dgx-h200").constants.step_us;
  EXPECT_NEAR(s.step_us, blocks + s.optimizer_us + once + s.launch_us, 1e-6 * s.step_us);
  EXPECT_EQ(s.bubble_us, 0);
  EXPECT_NEAR(s.tokens_per_s, 8 * 2048 / s.step_us * 1e6, 1e-6 * s.tokens_per_s);
  EXPECT_LT(s.efficiency, 1);
}

TEST(Step, SmallModelsWaitForTheHostUnlessCompiled) {
  const Model m = zoo_model("gpt2");
  EXPECT_GT(step_of(m, {.micro_batch = 1}).launch_us, 0);
  Workload graphs = workload(m, {.micro_batch = 1});
  graphs.layout.flags.compile = graphs.layout.flags.cuda_graphs = true;
  Pricer pricer(GpuModel::named("h200-sxm"));
  EXPECT_EQ(step_time(pricer, m, graphs).launch_us, 0);
}

TEST(Step, ForwardOnlyHasNoOptimizer) {
  const Model m = zoo_model("gpt2");
  const Step s = step_of(m, {.micro_batch = 8, .mode = Mode::prefill});
  EXPECT_EQ(s.optimizer_us, 0);
  EXPECT_LT(s.layer_us, step_of(m, {.micro_batch = 8}).layer_us / 2);
}

TEST(Step, TensorParallelismPaysForItsExchange) {
  const Model m = zoo_model("llama-2-7b");
  const Step one = step_of(m, {.tp = 1}), eight = step_of(m, {.tp = 8});
  EXPECT_EQ(one.layer.communication, 0);
  EXPECT_GT(eight.layer.communication, 0);
  EXPECT_LT(eight.layer_us, one.layer_us);
  EXPECT_LT(eight.tokens_per_s, one.tokens_per_s);  // per GPU
}

TEST(Step, PipelinesWaitInTheirBubble) {
  const Model m = zoo_model("llama-2-7b");
  const Step s = step_of(m, {.pp = 4});
  EXPECT_EQ(s.micro_batches, 16);  // default: four per stage
  EXPECT_GT(s.bubble_us, 2 * s.stage.us());
  EXPECT_LT(s.bubble_us, 3 * s.stage.us() + 1);
}

TEST(Step, UnevenStagesWaitForTheDeepest) {
  Model m = zoo_model("llama-2-7b");
  m.layers = 33;
  const double uneven = step_of(m, {.pp = 4}).stage.us();
  m.layers = 36;
  EXPECT_NEAR(step_of(m, {.pp = 4}).stage.us(), uneven, 0.10 * uneven);
}

std::string refusal(const Model& model, const Given& given) {
  try {
    workload(model, given);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    return error.what();
  }
  return "accepted";
}

TEST(Step, ImpossibleShapesAreRefusedWithTheRule) {
  EXPECT_NE(refusal(zoo_model("falcon-7b"), {.tp = 8}).find("64 or 72 heads"), std::string::npos);
  Model m = zoo_model("llama-2-7b");
  m.ffn = 10923;
  EXPECT_NE(refusal(m, {.tp = 2}).find("10923 is not divisible by tp 2"), std::string::npos);
  EXPECT_NE(refusal(zoo_model("gpt2"), {.micro_batch = 0}).find("micro-batch is 0"), std::string::npos);
  EXPECT_NE(refusal(zoo_model("gpt2"), {.tp = 0}).find("tp is 0"), std::string::npos);
  EXPECT_NE(refusal(zoo_model("gpt2"), {.pp = 13}).find("12 layers"), std::string::npos);
  EXPECT_NE(refusal(zoo_model("gpt2"), {.micro_batch = Count{1} << 60}), "accepted");
}

TEST(Step, ParametersPerRankAddUp) {
  const Model m = zoo_model("llama-2-7b");
  Workload w = workload(m, {});
  EXPECT_EQ(parameters_per_rank(m, w.layout), plan::count_parameters(m).total);
  w.layout.tp = 2;
  const double half = double(parameters_per_rank(m, w.layout)) / double(plan::count_parameters(m).total);
  EXPECT_NEAR(half, 0.5, 0.001);  // norms are whole on every rank
}

}  // namespace
}  // namespace medley::shape

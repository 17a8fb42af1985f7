// The error of the time model on measured steps, through the same path as `medley plan --machine`.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "published.hpp"

namespace medley::cost {
namespace {

/// The folder of data that is not part of the repository; empty if absent.
std::filesystem::path shared_data() {
  if (const char* shared = std::getenv("MEDLEY_SHARED")) return std::filesystem::path(shared) / "data";
  return std::filesystem::path(MEDLEY_SOURCE_DIR).parent_path() / "shared" / "data";
}

std::vector<MeasuredStep> vtrain_steps() {
  const std::filesystem::path path = shared_data() / "vtrain_single_train.csv";
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return {};
  return read_measured(text.str(), path.filename().string(), 50257);
}

TEST(Accuracy, HeldOutStepsOfVTrainAreWithinItsOwnError) {
  const std::vector<MeasuredStep> steps = vtrain_steps();
  if (steps.empty()) GTEST_SKIP() << "no vtrain_single_train.csv: set MEDLEY_SHARED to the shared folder";
  const Machine machine = find_machine("dgx-a100");
  Halves halves = split(steps);
  for (const Framework framework : {Framework::megatron, Framework::neox}) {
    for (auto* half : {&halves.fit, &halves.held_out})
      for (MeasuredStep& step : *half) step.framework = framework;
    const PredictionError seen = prediction_error(halves.fit, machine);
    const PredictionError unseen = prediction_error(halves.held_out, machine);
    std::cout << name(framework) << ": fit " << 100 * seen.mape << " %, held out " << 100 * unseen.mape << " %, worst "
              << 100 * unseen.worst << " %\n";
    EXPECT_LT(unseen.mape,
              framework == Framework::megatron ? 0.063 : 0.084);  // vTrain's own on one node: 8.37 %
  }
}

TEST(Accuracy, KorthikantisTableIsWithinCalculonsError) {
  const Machine machine = find_machine("selene");
  double sum = 0, worst = 0;
  const auto rows = published::korthikanti();
  for (const auto& [name, step] : rows) {
    const double us = Step(step.model, step.layout, Framework::megatron, 0).cost(machine).step_us;
    const double error = us / step.us - 1;
    std::cout << name << ": " << us * 1e-6 << " s, published " << step.us * 1e-6 << " s, " << 100 * error << " %\n";
    sum += std::abs(error);
    worst = std::max(worst, std::abs(error));
  }
  // Calculon: mean 3.65 %, worst 8.87 %.
  EXPECT_LT(sum / static_cast<double>(rows.size()), 0.0365);
  EXPECT_LT(worst, 0.0887);
}

}  // namespace
}  // namespace medley::cost

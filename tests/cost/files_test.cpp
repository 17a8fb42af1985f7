// The functions behind `medley plan calibrate`, `medley shape gemm` and `medley shape fit`: they take files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cost/calibrate_machine.hpp"
#include "cost/fit_sweep.hpp"
#include "cost/gemm_times.hpp"
#include "model/text.hpp"
#include "plan/helpers.hpp"

namespace medley::cost {
namespace {

using plan::refusal;

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) /
              (std::string("medley_") + testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr const char* steps =
    "model,gpu,gpus,framework,precision,seq,micro_batch,global_batch,dp,tp,pp,tokens_per_s_per_gpu\n"
    "llama-2-7b,a100-80-sxm,8,fsdp2,bf16,4096,1,8,8,1,1,2500\n"
    "llama-2-13b,a100-80-sxm,16,fsdp2,bf16,4096,1,16,16,1,1,1300\n"
    "llama-2-7b,h100-sxm,8,fsdp2,bf16,4096,1,8,8,1,1,6000\n";

TEST(CalibrateMachine, ChecksTheStepsOfItsOwnGpuAlone) {
  const TemporaryFile file(steps);
  CalibrateRequest request;
  request.data = {file.path()};
  request.check_only = true;
  const CalibrateResult result = calibrate_machine(request);
  EXPECT_EQ(result.fit_steps + result.held_out_steps, 2u);
  EXPECT_EQ(result.before.gap_us, result.machine.constants.gap_us);
  request.all = true;
  EXPECT_EQ(calibrate_machine(request).fit_steps, 2u);
  request.machine = "frontier";
  EXPECT_NE(refusal([&] { calibrate_machine(request); }).find("no step of a mi250x"), std::string::npos);
}

TEST(CalibrateMachine, NamesEveryBadRowOrSkipsThem) {
  const TemporaryFile file(std::string(steps) +
                           "llama-2-7b,a100-80-sxm,8,caffe,bf16,4096,1,8,8,1,1,2500\n"
                           "llama-2-7b,a100-80-sxm,8,fsdp2,bf16,4096,1,8,8,1,1,fast\n");
  CalibrateRequest request;
  request.data = {file.path()};
  request.check_only = true;
  const std::string refused = refusal([&] { calibrate_machine(request); });
  EXPECT_NE(refused.find("2 of 5 rows"), std::string::npos) << refused;
  EXPECT_NE(refused.find(file.path() + ":5"), std::string::npos) << refused;
  EXPECT_NE(refused.find("'caffe'"), std::string::npos) << refused;
  EXPECT_NE(refused.find(file.path() + ":6"), std::string::npos) << refused;
  EXPECT_NE(refused.find("'fast'"), std::string::npos) << refused;
  request.skip_bad_rows = true;
  const CalibrateResult result = calibrate_machine(request);
  EXPECT_EQ(result.fit_steps + result.held_out_steps, 2u);
  ASSERT_EQ(result.skipped.size(), 2u);
  EXPECT_EQ(to_json(result)["skipped"].size(), 2u);
}

TEST(CalibrateMachine, TakesStepTimesFromRecordedRuns) {
  const TemporaryFile file(
      "model,gpu,gpus,framework,precision,seq,micro_batch,global_batch,dp,tp,pp,step_ms,trace\n"
      "llama-2-7b,a100-80-sxm,8,fsdp2,bf16,4096,1,8,8,1,1,,runs/a\n"
      "llama-2-7b,a100-80-sxm,8,fsdp2,bf16,4096,1,8,8,1,1,1600,runs/b\n");
  std::vector<std::string> read;
  const auto rows = read_measured(model::read_file(file.path()), file.path(), 0, nullptr, [&](const std::string& path) {
    read.push_back(path);
    return 1.5e6;
  });
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].us, 1.5e6);
  EXPECT_EQ(rows[1].us, 1.6e6);  // given: the trace is not read
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0], (std::filesystem::path(file.path()).parent_path() / "runs/a").string());
  EXPECT_NE(refusal([&] { read_measured(model::read_file(file.path()), file.path(), 0); }).find("names a trace"),
            std::string::npos);
}

TEST(CalibrateMachine, TheFileKeepsTheSwitchAndTheLevels) {
  CalibrateResult result;
  result.machine = find_machine("dgx-h100");
  result.machine.above = {{.name = "pod", .hosts = 4, .oversubscription = 2, .latency_us = 3}};
  result.machine.between.message_gap_us = 7;
  const Machine read = parse_machine(machine_toml(result), "here.toml");
  EXPECT_EQ(read.nvls_gb_per_s, result.machine.nvls_gb_per_s);
  EXPECT_EQ(read.between.message_gap_us, 7);
  ASSERT_EQ(read.above.size(), 1u);
  EXPECT_EQ(read.above[0].hosts, 4);
  EXPECT_EQ(read.above[0].oversubscription, 2);
}

TEST(CalibrateMachine, KeptConstantsStayAndTheFileReadsBack) {
  const TemporaryFile file(steps);
  CalibrateRequest request;
  request.data = {file.path()};
  request.all = true;
  request.keep = {"gap_us"};
  const CalibrateResult result = calibrate_machine(request);
  EXPECT_EQ(result.machine.constants.gap_us, result.before.gap_us);
  CalibrateRequest untouched = request;
  untouched.check_only = true;
  EXPECT_LE(result.fit.mape, calibrate_machine(untouched).fit.mape);
  const Machine read = parse_machine(machine_toml(result), "here.toml");
  EXPECT_EQ(read.gpu.name, result.machine.gpu.name);
  EXPECT_NEAR(read.constants.step_us, result.machine.constants.step_us, 1e-5 * result.machine.constants.step_us);
  EXPECT_EQ(to_json(result)["constants"]["gap_us"], result.before.gap_us);
}

TEST(GemmTimes, SustainedIsSlowerAndColumnMajorExchangesTheSides) {
  const TemporaryFile file("m,n,k\n8192,1000,8192\n");
  GemmTimesRequest request;
  request.gpu = "h200-sxm";
  request.file = file.path();
  const GemmTimesResult burst = gemm_times(request);
  ASSERT_EQ(burst.rows.size(), 1u);
  EXPECT_TRUE(burst.calibrated);
  const GpuModel gpu = GpuModel::named("h200-sxm");
  Gemm called = burst.rows[0].gemm;
  request.column_major = true;
  EXPECT_EQ(gemm_times(request).rows[0].time.us, gpu.predict(called).us);
  std::swap(called.m, called.n);
  EXPECT_EQ(burst.rows[0].time.us, gpu.predict(called).us);
  request.column_major = false;
  request.sustained = true;
  const GemmTime held = gemm_times(request).rows[0].time;
  EXPECT_GT(held.us, burst.rows[0].time.us);
  EXPECT_NEAR(held.us * held.tflops, burst.rows[0].time.us * burst.rows[0].time.tflops, 1e-6 * held.us * held.tflops);
}

TEST(FitSweep, ReportsEveryGroupAndCalibratesOnlyWhenAsked) {
  const GpuModel gpu = GpuModel::named("a100-80-sxm");
  std::string text = "m,n,k,batch,layout,type,us,name\n";
  for (int i = 0; i < 600; ++i) {
    const Gemm gemm{.m = 64 + 8 * i, .n = 128 + 16 * (i % 50), .k = 256 + 64 * (i % 7)};
    text += std::to_string(gemm.m) + "," + std::to_string(gemm.n) + "," + std::to_string(gemm.k) + ",1,TN,bf16," +
            std::to_string(gpu.predict_us(gemm)) + ",q\n";
  }
  const TemporaryFile file(text);
  FitRequest request;
  request.sweep = file.path();
  request.gpu = "a100-80-sxm";
  FitResult result = fit_sweep(request);
  EXPECT_TRUE(result.calibration.is_null());
  ASSERT_FALSE(result.rows.empty());
  const auto all = std::ranges::find(result.rows, "all", &FitRow::group);
  ASSERT_NE(all, result.rows.end());
  EXPECT_LT(all->fitted.mape, 0.1);  // the model can fit its own predictions
  EXPECT_LT(all->fitted.count, 600u);
  request.calibrate = true;
  EXPECT_TRUE(fit_sweep(request).calibration.contains("gemm"));
}

}  // namespace
}  // namespace medley::cost

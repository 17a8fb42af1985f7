// Runs the built command as a user would: `medley shape gemm`, `fit` and `bench`, good input and bad.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace {

struct Outcome {
  int status = -1;
  std::string out, err;
};

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ShapeCommand : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "medley-shape-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  Outcome run(const std::string& arguments) const {
    const std::string out = (folder_ / "out").string(), err = (folder_ / "err").string();
    const int status = std::system((MEDLEY_COMMAND " shape " + arguments + " >" + out + " 2>" + err).c_str());
    return {WEXITSTATUS(status), slurp(out), slurp(err)};
  }
  static void expect_one_line(const Outcome& outcome, int status, const std::string& names) {
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(names), std::string::npos) << outcome.err;
  }

  std::filesystem::path folder_;
};

TEST_F(ShapeCommand, GemmWritesTheContractsRowsAndNothingElse) {
  const auto list = file("list.csv", "m,n,k,batch,layout,colour\n4096,8192,4096,1,TN,red\n128,2048,2048,64,NN,blue\n");
  const Outcome outcome = run("gemm --gpu h200-sxm " + list + " --json -");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.at("rows").size(), 2u);
  EXPECT_EQ(json["rows"][1]["batch"], 64);
  EXPECT_EQ(json["rows"][1]["layout"], "NN");
  EXPECT_NEAR(json["rows"][0]["predicted_us"].get<double>(), 360, 60);  // 275 GFLOP at about 760 TFLOP/s
  EXPECT_TRUE(json["calibrated"].get<bool>());
}

TEST_F(ShapeCommand, SustainedProductsAreSlowerWhereTheyAreDense) {
  const std::string list = file("list.csv", "m,n,k\n8192,8192,8192\n16,128,128\n");
  const auto burst = nlohmann::json::parse(run("gemm --gpu h200-sxm " + list + " --json -").out)["rows"],
             held = nlohmann::json::parse(run("gemm --gpu h200-sxm --sustained " + list + " --json -").out)["rows"];
  const auto ratio = [&](std::size_t i) {
    return held[i]["predicted_us"].get<double>() / burst[i]["predicted_us"].get<double>();
  };
  EXPECT_GT(ratio(0), 1.05);
  EXPECT_LT(ratio(0), 1.18);  // the power limit adds at most 18 % to forward products on Hopper
  EXPECT_NEAR(ratio(1), 1, 0.01);
  EXPECT_NEAR(held[0]["tflops"].get<double>() * ratio(0), burst[0]["tflops"].get<double>(), 0.1);
}

TEST_F(ShapeCommand, GemmMarksDatasheetGpusAsUncalibrated) {
  const Outcome outcome = run("gemm --gpu v100-sxm2 " + file("list.csv", "m,n,k\n4096,4096,4096\n"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("uncalibrated"), std::string::npos);
}

TEST_F(ShapeCommand, BadInputIsOneLineThatNamesTheValue) {
  const auto list = file("list.csv", "m,n,k\n1,2,3\n");
  expect_one_line(run("gemm --gpu h300 " + list), 2, "'h300'");
  expect_one_line(run("gemm --gpu h200-sxm " + folder_.string() + "/none.csv"), 2, "none.csv");
  expect_one_line(run("gemm --gpu h200-sxm " + file("zero.csv", "m,n,k\n0,2,3\n")), 2, "m = 0");
  expect_one_line(run("gemm --gpu h200-sxm --calibration " + list + " " + list), 2, "calibration");
  EXPECT_EQ(run("gemm --gpu h200-sxm --json " + folder_.string() + "/no/x.json " + list).status, 2);
  expect_one_line(run("fit " + list), 2, "'us'");
}

TEST_F(ShapeCommand, BenchWithoutAGpuSaysSo) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const Outcome outcome = run("bench --quick --csv " + folder_.string() + "/sweep.csv");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace

// The command's guarantees: exit status, one clear line on stderr, JSON fields with the agreed names.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

struct Result {
  int status = -1;
  std::string output;
};

Result medley(const std::string& arguments) {
  Result result;
  const std::string line = std::string(MEDLEY_COMMAND) + " " + arguments + " 2>&1";
  FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return result;
  char buffer[4096];
  for (std::size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.output.append(buffer, n);
  const int ended = pclose(pipe);
  result.status = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
  return result;
}

class ShapeCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("medley_shape_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST_F(ShapeCommand, WritesTheAgreedFields) {
  const auto result = medley("shape --model gpt2 --gpu h200-sxm --micro-batch 4 --json -");
  ASSERT_EQ(result.status, 0) << result.output;
  const auto json = nlohmann::json::parse(result.output);  // stdout must contain nothing else
  ASSERT_FALSE(json["gemms"].empty());
  for (const auto& gemm : json["gemms"])
    for (const char* key : {"name", "m", "n", "k", "batch", "predicted_us", "tflops", "efficiency", "lost_to"})
      EXPECT_TRUE(gemm.contains(key)) << key;
  EXPECT_GT(json["layer_us"].get<double>(), 0);
  EXPECT_GT(json["step_us"].get<double>(), json["layer_us"].get<double>());
  ASSERT_FALSE(json["advice"].empty());
  for (const auto& advice : json["advice"])
    for (const char* key : {"rule", "was", "now", "gain"}) EXPECT_TRUE(advice.contains(key)) << key;
}

TEST_F(ShapeCommand, GivesNoPercentWhereNothingWasMeasured) {
  const auto result = medley("shape --model gpt2 --gpu mi300x --micro-batch 4 --json -");
  ASSERT_EQ(result.status, 0);
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_FALSE(json["calibrated"].get<bool>());
  for (const auto& advice : json["advice"]) {
    EXPECT_TRUE(advice["gain"].is_null());
    EXPECT_EQ(advice["gain_text"].get<std::string>().find('%'), std::string::npos);
  }
}

TEST_F(ShapeCommand, LintFailsWithFileAndKey) {
  const auto path = file("config.json", R"({"model_type": "gpt2", "n_embd": 1600, "n_head": 25, "n_layer": 48,
    "n_positions": 1024, "vocab_size": 50257})");
  const auto bad = medley("shape lint " + path + " --gpu h200-sxm --allow 5%");
  EXPECT_EQ(bad.status, 1) << bad.output;
  EXPECT_NE(bad.output.find("config.json: vocab_size 50257 "), std::string::npos) << bad.output;
  EXPECT_EQ(bad.output.find("together"), std::string::npos);
  EXPECT_EQ(medley("shape lint " + path + " --gpu h200-sxm --allow 50%").status, 0);
  const auto several =
      medley("shape lint h=4096,a=60,head_dim=72,layers=32,vocab=50257,ffn=10922,seq=2048 --gpu h200-sxm");
  EXPECT_NE(several.output.find("each alone; together they waste"), std::string::npos) << several.output;
  const auto split = medley("shape lint " + path + " --gpu h200-sxm --tp 8");
  EXPECT_EQ(split.status, 1);
  EXPECT_NE(split.output.find("config.json: n_head 25 "), std::string::npos) << split.output;
}

TEST_F(ShapeCommand, BadInputIsOneLineAndStatusTwo) {
  for (const char* arguments :
       {"shape --model gpt2 --gpu h900", "shape --model nothing-like-it --gpu h200-sxm", "shape --gpu h200-sxm",
        "shape --model falcon-7b --gpu h200-sxm --tp 8", "shape --model gpt2 --gpu h200-sxm --micro-batch 0",
        "shape --model gpt2 --gpu h200-sxm --micro-batch 9000000000000000000",
        "shape --model gpt2 --gpu h200-sxm --mode sleep", "shape --model gpt2 --gpu h200-sxm --attention blue",
        "shape lint gpt2 --gpu h200-sxm --allow much", "shape search --model gpt2 --gpu h200-sxm --ffn-step 0",
        "shape compare --model gpt2", "shape --model gpt2 --bogus"}) {
    const auto result = medley(arguments);
    EXPECT_EQ(result.status, 2) << arguments << "\n" << result.output;
    EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << arguments << "\n" << result.output;
  }
}

TEST_F(ShapeCommand, ComparesAndSearches) {
  const auto compared = medley("shape compare --model gpt2 --gpu h200-sxm,a100-80-sxm --json -");
  ASSERT_EQ(compared.status, 0) << compared.output;
  EXPECT_EQ(nlohmann::json::parse(compared.output)["rows"].size(), 2u);
  const auto found = medley("shape search --model gpt2 --gpu h200-sxm --micro-batch 4 --json -");
  ASSERT_EQ(found.status, 0) << found.output;
  const auto json = nlohmann::json::parse(found.output);
  EXPECT_GT(json["candidates"].get<int>(), 100);
  EXPECT_EQ(json["quality"], "not predicted");
}

}  // namespace

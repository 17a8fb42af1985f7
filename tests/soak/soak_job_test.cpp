// What a soak reports: counts by kind of failure, and the program of a failure.
#include "soak/soak_job.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace medley::soak {
namespace {

TEST(SoakResult, CountsHangsApartFromMismatches) {
  SoakResult result{.ranks = 3, .seed = 7, .backends = {"shm"}, .valid = {}, .invalid = {}};
  EXPECT_TRUE(result.passed());
  result.valid = {10, {{Failure::What::hang, 8, "stuck", {}}, {Failure::What::mismatch, 9, "wrong", {2, 5}}}};
  result.invalid = {4, {{1, "a plan", "a text"}}};
  EXPECT_EQ(result.hangs(), 1);
  EXPECT_EQ(result.mismatches(), 1);
  EXPECT_FALSE(result.passed());
  const auto json = to_json(result);
  EXPECT_EQ(json["programs"], 10);
  EXPECT_EQ(json["failures"][0]["kind"], "hang");
  EXPECT_EQ(json["failures"][1]["without"], (std::vector<int>{2, 5}));
  EXPECT_EQ(json["invalid"]["programs"], 4);
  EXPECT_EQ(json["invalid"]["failures"][0]["plan"], "a plan");
}

TEST(ProgramText, LeavesOutTheStepsThatDoNotMatter) {
  GenerateOptions options;
  options.backends = {"shm"};
  const Failure whole{Failure::What::mismatch, 3, "", {}};
  Failure shrunk = whole;
  shrunk.left_out = {0};
  EXPECT_EQ(program_text(whole, 2, options), to_text(generate(3, 2, options)));
  EXPECT_NE(program_text(shrunk, 2, options), program_text(whole, 2, options));
}

TEST(Backends, AreThoseAskedForOrAllThatWork) {
  EXPECT_EQ(backends_or_all({"gloo"}), (std::vector<std::string>{"gloo"}));
  const std::vector<std::string> all = backends_or_all({});
  EXPECT_NE(std::find(all.begin(), all.end(), "shm"), all.end());
}

}  // namespace
}  // namespace medley::soak

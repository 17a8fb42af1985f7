#include "shape/rules.hpp"

#include <gtest/gtest.h>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

std::vector<RuleCheck> rules_of(const std::string& name, const Given& given, std::string_view gpu = "h200-sxm") {
  const Model m = zoo_model(name);
  Pricer pricer(GpuModel::named(gpu));
  return check_rules(pricer, m, workload(m, given));
}

TEST(Rules, AreSevenWithAVerdictEach) {
  const auto rules = rules_of("gpt3-2.7b", {.micro_batch = 4});
  ASSERT_EQ(rules.size(), 7u);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(rules[std::size_t(i)].number, i + 1);
    EXPECT_FALSE(rules[std::size_t(i)].text.empty());
    EXPECT_FALSE(rules[std::size_t(i)].verdict.empty()) << i + 1;
  }
}

TEST(Rules, KnownFlawsAreFound) {
  EXPECT_FALSE(rules_of("gpt3-2.7b", {})[0].holds);                                    // vocabulary 50257
  EXPECT_TRUE(rules_of("pythia-2.8b", {})[0].holds);                                   // 50304
  EXPECT_FALSE(rules_of("gpt3-2.7b", {})[2].holds);                                    // heads of 80
  EXPECT_TRUE(rules_of("gpt3-6.7b", {})[2].holds);                                     // heads of 128
  EXPECT_FALSE(rules_of("llama-2-7b", {.tp = 8})[5].holds);                            // 11008/8 = 1376
  EXPECT_FALSE(rules_of("qwen2.5-72b", {.tp = 8, .seq = 4096})[5].holds);              // 29568/8 = 3696
  EXPECT_FALSE(rules_of("bloom-176b", {.tp = 8, .pp = 4})[6].holds);                   // 70 layers
  EXPECT_FALSE(rules_of("llama-3.1-405b", {.tp = 8, .pp = 4, .seq = 4096})[6].holds);  // 126 layers
}

TEST(Rules, OlderGpusAskForLess) {
  EXPECT_TRUE(rules_of("gpt3-2.7b", {}, "v100-sxm2")[2].holds);  // 80 is a multiple of 8
}

TEST(Rules, DisagreementIsSaidWithAReason) {
  for (const char* name : {"gpt3-2.7b", "phi-3-mini", "opt-2.7b", "falcon-7b"}) {
    for (const auto& rule : rules_of(name, {.micro_batch = 2, .seq = 2048})) {
      if (rule.agrees) continue;
      EXPECT_FALSE(rule.holds);
      EXPECT_NE(rule.verdict.find("buys nothing here: "), std::string::npos) << rule.verdict;
    }
  }
}

TEST(Rules, UncalibratedGainsAreWords) {
  EXPECT_EQ(gain_text(0.123, true), "12.3 % faster");
  EXPECT_EQ(gain_text(-0.05, true), "5.0 % slower");
  for (const double gain : {-0.2, 0.0, 0.02, 0.05, 0.5}) EXPECT_EQ(gain_text(gain, false).find('%'), std::string::npos);
}

}  // namespace
}  // namespace medley::shape

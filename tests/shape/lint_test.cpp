#include "shape/lint.hpp"

#include <gtest/gtest.h>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

TEST(Lint, NamesTheKeyAsTheFileSpellsIt) {
  EXPECT_EQ(key_of(Knob::heads, R"({"n_head": 25, "n_embd": 1600})"), "n_head");
  EXPECT_EQ(key_of(Knob::hidden, R"({"n_head": 25, "n_embd": 1600})"), "n_embd");
  EXPECT_EQ(key_of(Knob::layers, "--num-layers 24 --hidden-size 1024"), "num-layers");
  EXPECT_EQ(key_of(Knob::ffn, "\"intermediate-size\": 4096"), "intermediate-size");
  EXPECT_EQ(key_of(Knob::vocabulary, R"({"text_vocab_size_limit": 3})"),
            "vocab_size");  // a part of a word does not count
  EXPECT_EQ(key_of(Knob::heads, ""), "num_attention_heads");
}

TEST(Lint, FindsTheVocabularyAndLetsAGoodModelPass) {
  Pricer pricer(GpuModel::named("h200-sxm"));
  const Model bad = zoo_model("gpt2-xl");
  const auto findings = lint(pricer, bad, workload(bad, {.micro_batch = 8}), 0.03, R"("vocab_size": 50257)").findings;
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings.front().key, "vocab_size");
  EXPECT_EQ(findings.front().value, 50257);
  EXPECT_GT(findings.front().waste, 0.03);
  EXPECT_TRUE(lint(pricer, bad, workload(bad, {.micro_batch = 8}), 0.9, "").findings.empty());
  const Model good = zoo_model("gpt3-6.7b");
  Model padded = good;
  padded.vocab = 50304;
  EXPECT_TRUE(lint(pricer, padded, workload(padded, {.micro_batch = 4}), 0.05, "").findings.empty());
}

TEST(Lint, TogetherIsLessThanTheSumAndNoLessThanTheWorst) {
  Pricer pricer(GpuModel::named("h200-sxm"));
  Model bad = zoo_model("llama-2-7b");
  bad.vocab = 50257;
  bad.ffn = 10922;
  const LintFindings found = lint(pricer, bad, workload(bad, {.micro_batch = 2, .seq = 2048}), 0.03, "");
  ASSERT_GE(found.findings.size(), 2u);
  double sum = 0;
  for (const Finding& f : found.findings) sum += f.waste;
  EXPECT_GE(found.together, found.findings.front().waste);
  EXPECT_LT(found.together, sum);
}

TEST(Lint, WhatCannotBeSplitIsAFinding) {
  Pricer pricer(GpuModel::named("h200-sxm"));
  Workload work;
  work.layout.tp = 8;
  const auto findings = lint(pricer, zoo_model("falcon-7b"), work, 0.05, "").findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings.front().knob, Knob::heads);
  EXPECT_EQ(findings.front().better, 0);
  EXPECT_NE(findings.front().why.find("tp 8"), std::string::npos);
}

}  // namespace
}  // namespace medley::shape

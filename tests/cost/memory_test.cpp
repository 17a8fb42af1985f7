// A GPU's memory, compared with published formulas.
#include "cost/memory.hpp"

#include <gtest/gtest.h>

#include "model/tensors.hpp"
#include "plan/helpers.hpp"

namespace medley::cost {
namespace {

TEST(Memory, FollowsKorthikantiAndZero) {
  const Model m = *model_from_zoo("gpt3-175b");
  Layout l = plan::layout(1, 8, 1);
  l.flags.flash_attention = false;
  check(l, m);
  // One layer keeps s·b·h·(10 + 24/t + 5·a·s/(h·t)) bytes; logits exist in 16 bits and in f32.
  const double sbh = 2048.0 * 12288, layer = sbh * (10 + 24.0 / 8 + 5.0 * 96 * 2048 / (12288 * 8.0));
  const Memory memory = memory_per_gpu(m, l, Framework::megatron, 0);
  EXPECT_NEAR(static_cast<double>(memory.activations), 96 * layer + 2048.0 * 51200 / 8 * 10, 1e6);
  Layout d = plan::layout(64, 1, 1);
  d.zero = 3;
  const Model small = plan::gpt();
  check(d, small);
  const Memory sharded = memory_per_gpu(small, d, Framework::textbook, 0);
  double unit = 0;  // two layers are whole at a time
  for (const auto& tensor : layer_tensors(small, false)) unit += static_cast<double>(tensor.elements());
  EXPECT_NEAR(static_cast<double>(sharded.parameters + sharded.gradients + sharded.optimizer),
              16.0 * static_cast<double>(count_parameters(small).total) / 64 + 2 * 2 * unit, 64);
}

TEST(Memory, TheFullestRankDecides) {
  // The last stage holds the logits of a large vocabulary; the first sends most.
  Model m = plan::gpt(1024, 16, 8);
  m.vocab = 1 << 20;
  m.tied_embeddings = false;
  Layout l = plan::layout(1, 1, 4);
  l.global_batch = 4;
  check(l, m);
  const FullestGpu fullest = fullest_gpu(m, l, Framework::megatron);
  EXPECT_EQ(fullest.rank, 3);
  EXPECT_GE(fullest.memory.total(), memory_per_gpu(m, l, Framework::megatron, 0).total());
}

TEST(Memory, WholeExpertsKeepTheirOwnRanksTokensAlone) {
  // DeepSpeed's tensor ranks have whole experts and drop each other's tokens; Megatron's have a slice and all tokens.
  Model m = *model_from_zoo("mixtral-8x7b"), narrow = m;
  narrow.moe_ffn /= 2;
  Layout l = plan::layout(1, 2, 1);
  check(l, m);
  const auto kept_by_experts = [&](Framework framework) {
    return memory_per_gpu(m, l, framework, 0).activations - memory_per_gpu(narrow, l, framework, 0).activations;
  };
  EXPECT_EQ(kept_by_experts(Framework::deepspeed), kept_by_experts(Framework::megatron));
}

TEST(Memory, FsdpKeepsParametersWholeWhereItDoesNotReshard) {
  const Model m = *model_from_zoo("llama-2-7b");
  const auto of = [&](auto change) {
    Layout l = plan::layout(8, 1, 1);
    change(l);
    check(l, m);
    return memory_per_gpu(m, l, Framework::fsdp2, 0);
  };
  const Memory sharded = of([](Layout&) {}), given = of([](Layout&l) { l.zero = 3; }),
               kept = of([](Layout&l) { l.zero = 2; }),
               not_resharded = of([](Layout&l) { l.flags.reshard_after_forward = false; });
  EXPECT_EQ(sharded.total(), given.total());
  EXPECT_EQ(kept.parameters, 2 * plan::count_parameters(m).total);
  EXPECT_EQ(not_resharded.total(), kept.total());
  EXPECT_LT(sharded.parameters, kept.parameters / 4);
  EXPECT_EQ(sharded.optimizer, kept.optimizer);
}

TEST(Memory, TheSentenceSaysMarginAndReason) {
  const Memory memory{.parameters = 10'000'000'000, .gradients = 0, .optimizer = 0, .activations = 60'000'000'000};
  const std::string text = fit_sentence(memory, 80e9);
  EXPECT_NE(text.find("65.2 of 70.0 GiB usable, 4.8 GiB to spare"), std::string::npos) << text;
  EXPECT_NE(text.find("activations"), std::string::npos) << text;
}

}  // namespace
}  // namespace medley::cost

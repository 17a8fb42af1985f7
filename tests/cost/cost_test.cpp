// Laws that every step's time obeys, for every framework.
#include "cost/cost.hpp"

#include <gtest/gtest.h>

#include "cost/flops.hpp"
#include "published.hpp"

namespace medley::cost {
namespace {

Layout layout_of(int dp, int tp, int pp, Count micro_batches) {
  Layout l;
  l.dp = dp;
  l.tp = tp;
  l.pp = pp;
  l.micro_batch = 1;
  l.global_batch = micro_batches * dp;
  return l;
}

double step_us(const Model& model, Layout layout, Framework framework, const Machine& machine) {
  check(layout, model);
  return Step(model, layout, framework, 0).cost(machine).step_us;
}

// Megatron's gradient_accumulation_fusion: the product reads the main gradients and writes their sum, in f32
// unless told otherwise.
TEST(Cost, MegatronsWeightGradientsAddToTheMainGradients) {
  const Model model = published::gpt(2048, 16, 24);
  KernelTime kernels(GpuModel::named("h100-sxm"));
  const auto accumulated = [&](Framework framework, std::optional<DType> gradients) {
    Layout layout = layout_of(8, 1, 1, 2);
    layout.grad_dtype = gradients;
    check(layout, model);
    Count most = 0;
    make_schedule(model, layout, framework, 0).tally([&](const Entry& entry, Count) {
      if (entry.kind != Kind::gemm || entry.gemm.accumulated == 0) return;
      EXPECT_EQ(entry.gemm.layout, "NT");
      most = entry.gemm.accumulated;
      Entry plain = entry;
      plain.gemm.accumulated = 0;
      const double bytes = static_cast<double>(most * entry.gemm.m * entry.gemm.n);
      EXPECT_NEAR(kernels.us(entry) - kernels.us(plain),
                  (kernels.stream_us(StreamOp::elementwise, bytes) - kernels.stream_us(StreamOp::elementwise, 0)) / 4,
                  1e-6);
    });
    return most;
  };
  EXPECT_EQ(accumulated(Framework::megatron, std::nullopt), 6);
  EXPECT_EQ(accumulated(Framework::megatron, DType::bf16), 0);
  EXPECT_EQ(accumulated(Framework::ddp, std::nullopt), 0);
}

TEST(Cost, BreakdownSumsToTheStep) {
  const Model model = published::gpt(2048, 16, 24);
  for (const Framework framework : {Framework::textbook, Framework::megatron, Framework::deepspeed, Framework::neox,
                                    Framework::ddp, Framework::fsdp2}) {
    const bool pipelined = framework != Framework::ddp && framework != Framework::fsdp2;
    Layout layout = pipelined ? layout_of(4, 2, 4, 8) : layout_of(32, 1, 1, 2);
    check(layout, model);
    for (const Count rank : {Count{0}, layout.world() - 1}) {
      const StepCost cost = Step(model, layout, framework, rank).cost(find_machine("dgx-h100"));
      double sum = 0;
      for (const double us : cost.spent) sum += us;
      EXPECT_NEAR(sum, cost.step_us, 1e-6 * cost.step_us) << name(framework) << " rank " << rank;
      EXPECT_GT(at(cost.spent, Cause::compute), 0) << name(framework);
    }
  }
}

TEST(Cost, MoreBandwidthIsNeverSlower) {
  const Model model = published::gpt(4096, 32, 24);
  Machine slow = find_machine("dgx-a100"), fast = slow;
  fast.between.gb_per_s *= 4;
  for (const Framework framework : {Framework::megatron, Framework::neox}) {
    EXPECT_LT(step_us(model, layout_of(16, 8, 2, 8), framework, fast),
              step_us(model, layout_of(16, 8, 2, 8), framework, slow));
  }
  fast = slow;
  fast.inside.gb_per_s *= 2;
  EXPECT_LT(step_us(model, layout_of(1, 8, 1, 4), Framework::megatron, fast),
            step_us(model, layout_of(1, 8, 1, 4), Framework::megatron, slow));
}

TEST(Cost, BubbleShrinksWithMicroBatches) {
  const Model model = published::gpt(4096, 32, 32);
  const Machine machine = find_machine("dgx-a100");
  double last = 1;
  for (const Count micro_batches : {4, 8, 16, 32}) {
    Layout layout = layout_of(1, 1, 4, micro_batches);
    check(layout, model);
    const StepCost cost = Step(model, layout, Framework::megatron, 0).cost(machine);
    const double share = at(cost.spent, Cause::bubble) / cost.step_us;
    EXPECT_LT(share, last) << micro_batches;
    last = share;
  }
}

TEST(Cost, FullRecomputeCostsAboutAThird) {
  const Model model = published::gpt(8192, 64, 16);
  const Machine machine = find_machine("dgx-a100");
  Layout layout = layout_of(1, 8, 1, 4);
  layout.micro_batch = 4;
  layout.global_batch = 16;
  const double kept = step_us(model, layout, Framework::megatron, machine);
  layout.recompute = Recompute::full;
  EXPECT_NEAR(step_us(model, layout, Framework::megatron, machine) / kept, 1.33, 0.07);
}

// TORCH_DISTRIBUTED_DEBUG=DETAIL: rank 0 of a group answers its ranks one by one, so that the host's time per
// collective grows with the group. Only nanotron's pipelines over several hosts have it unless the layout
// says so.
TEST(Cost, DebugChecksKeepTheHostBusyWithEveryRankOfAGroup) {
  const Model model = published::gpt(1024, 16, 16);
  const Machine machine = find_machine("ec2-p5");
  const auto us = [&](Layout layout, std::optional<bool> debug, Framework framework = Framework::nanotron) {
    layout.flags.distributed_debug = debug;
    return step_us(model, layout, framework, machine);
  };
  const Layout pipeline = layout_of(4, 2, 2, 8), one_host = layout_of(2, 2, 2, 8), flat = layout_of(8, 2, 1, 8);
  EXPECT_EQ(us(pipeline, std::nullopt), us(pipeline, true));
  EXPECT_GT(us(pipeline, true), 1.5 * us(pipeline, false));
  EXPECT_EQ(us(one_host, std::nullopt), us(one_host, false));
  EXPECT_EQ(us(flat, std::nullopt), us(flat, false));
  EXPECT_EQ(us(pipeline, std::nullopt, Framework::megatron), us(pipeline, false, Framework::megatron));
  EXPECT_GT(us(layout_of(4, 4, 1, 8), true), 1.2 * us(layout_of(8, 2, 1, 8), true));
}

TEST(Cost, FlopsAreThoseOfThePapers) {
  const Model model = published::gpt(12288, 96, 96);
  Layout layout = layout_of(1, 8, 8, 64);
  check(layout, model);
  const double b = 64, s = 2048, l = 96, h = 12288, v = 51200;
  EXPECT_NEAR(model_flops(model, layout) / (72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h))), 1, 1e-3);
  layout.recompute = Recompute::full;
  EXPECT_NEAR(hardware_flops(model, layout) / (96 * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h))), 1, 1e-3);
}

TEST(Cost, ATrillionParametersOnThousandsOfGpusIsFinite) {
  const Model model = published::gpt(25600, 160, 128);
  const double us = step_us(model, layout_of(64, 8, 64, 128), Framework::megatron, find_machine("dgx-a100"));
  EXPECT_GT(us, 1e6);
  EXPECT_LT(us, 1e9);
}

}  // namespace
}  // namespace medley::cost

// Operations that a schedule marks as hidden cost less in the simulation, and time is attributed to the right
// axis.
#include <gtest/gtest.h>

#include "cost/cost.hpp"
#include "model/zoo.hpp"

namespace medley::cost {
namespace {

const Model model_7b = *model::model_from_zoo("llama-2-7b");

StepCost cost_of(const Model& m, Layout l, Framework f) {
  check(l, m);
  return Step(m, l, f, 0).cost(find_machine("dgx-h100"));
}

Layout spread(int dp, int tp, int cp = 1) {
  Layout l;
  l.dp = dp;
  l.tp = tp;
  l.cp = cp;
  l.seq = 4096;
  l.sp = tp > 1;
  return l;
}

TEST(Overlap, ParameterGathersHideBehindTheForwardPass) {
  Layout l = spread(32, 1);
  l.zero = 1;
  const StepCost exposed = cost_of(model_7b, l, Framework::megatron);
  l.flags.overlap_param_gather = true;
  const StepCost hidden = cost_of(model_7b, l, Framework::megatron);
  EXPECT_LT(hidden.step_us, 0.98 * exposed.step_us);
  EXPECT_LT(at(hidden.spent, Cause::dp), at(exposed.spent, Cause::dp));
}

TEST(Overlap, TensorParallelCollectivesHideBehindTheirProducts) {
  Layout l = spread(1, 8);
  const StepCost exposed = cost_of(model_7b, l, Framework::megatron);
  l.flags.tp_comm_overlap = true;
  const StepCost hidden = cost_of(model_7b, l, Framework::megatron);
  EXPECT_LT(hidden.step_us, exposed.step_us);
  EXPECT_LT(at(hidden.spent, Cause::tp), 0.7 * at(exposed.spent, Cause::tp));
}

TEST(Overlap, StagesOfAnInterleavedPipelineGatherTheirParametersAtTheSameTime) {
  // Gathered by each stage behind the one before it, the parameters would cost pp times their time.
  Layout l = spread(16, 1);
  l.pp = 4;
  l.virtual_stages = 4;
  l.zero = 1;
  l.global_batch = 16 * 8;
  const StepCost exposed = cost_of(model_7b, l, Framework::megatron);
  l.flags.overlap_param_gather = true;
  const StepCost hidden = cost_of(model_7b, l, Framework::megatron);
  EXPECT_LT(hidden.step_us, exposed.step_us);
  // Chunks 0 and 1 are gathered before the first pass, chunk 2 with the virtual micro-batch that reaches
  // chunk 1.
  std::vector<std::size_t> passes_before;
  std::size_t passes = 0;
  check(l, model_7b);
  make_schedule(model_7b, l, Framework::megatron, 0).walk([&](const Entry& entry, const Place& place) {
    // a chunk has two layers
    if (entry.module == "attention.qkv" && entry.phase == Phase::forward && place.layer % 2 == 0) ++passes;
    if (entry.kind == Kind::comm && entry.op == Op::all_gather && entry.group == "dp") passes_before.push_back(passes);
  });
  ASSERT_GE(passes_before.size(), 4u);
  EXPECT_EQ(passes_before.front(), 0u);
  EXPECT_EQ(passes_before.back(), 8u);  // chunk 3: when the ninth pass, the first of chunk 2, begins
}

TEST(Overlap, TensorParallelOverlapRunsProductsInPartsAndReducesTheLastPartAtTheEnd) {
  Layout l = spread(1, 8);
  l.flags.tp_comm_overlap = true;
  check(l, model_7b);
  Count gathered = 0, reduced = 0;
  make_schedule(model_7b, l, Framework::megatron, 0).tally([&](const Entry& entry, Count count) {
    if (entry.kind == Kind::gemm && entry.gemm.parts > 1) (entry.gemm.layout == "TN" ? gathered : reduced) += count;
    if (entry.kind == Kind::comm && entry.op == Op::reduce_scatter && entry.phase == Phase::forward &&
        entry.group == "tp" && !entry.exposed) {
      EXPECT_GT(entry.tail, 0);
    }
  });
  EXPECT_EQ(gathered, 4 * model_7b.layers);  // qkv, projection, up and down
  EXPECT_EQ(reduced, 2 * model_7b.layers);   // input gradients of projection and down
}

TEST(Overlap, AnOperationWithATailEndsAfterTheKernelsItOverlaps) {
  UnderWay op;
  op.join(10, EntryCost{.us = 8, .tail_us = 2, .cause = Cause::tp});
  EXPECT_EQ(op.done(5), 10);
  EXPECT_EQ(op.done(9), 11);
}

TEST(Overlap, TokenExchangesHideBehindAnotherMicroBatch) {
  const Model moe = *model::model_from_zoo("qwen3-30b-a3b");
  Layout l = spread(8, 1);
  l.ep = 8;
  l.zero = 1;
  l.global_batch = 64;
  const StepCost exposed = cost_of(moe, l, Framework::megatron);
  l.flags.overlap_experts = true;
  const StepCost hidden = cost_of(moe, l, Framework::megatron);
  EXPECT_GT(at(exposed.spent, Cause::ep), 0.1 * exposed.step_us);
  EXPECT_LT(at(hidden.spent, Cause::ep), 0.2 * at(exposed.spent, Cause::ep));
  EXPECT_LT(hidden.step_us, exposed.step_us);
  l.global_batch = 8;  // one micro-batch has no other to hide behind
  const StepCost alone = cost_of(moe, l, Framework::megatron);
  EXPECT_GT(at(alone.spent, Cause::ep), 0.1 * alone.step_us);
}

TEST(Overlap, GraphsOfAttentionAndRouterLeaveTheExpertsToTheHost) {
  const Model moe = *model::model_from_zoo("qwen3-30b-a3b");
  Layout l = spread(8, 1);
  l.ep = 8;
  l.seq = 1024;
  l.flags.fp8 = true;
  const double eager = at(cost_of(moe, l, Framework::megatron).spent, Cause::launch);
  l.flags.partial_graphs = true;
  const double partial = at(cost_of(moe, l, Framework::megatron).spent, Cause::launch);
  l.flags.cuda_graphs = true;
  EXPECT_LT(partial, eager);
  EXPECT_GT(partial, 0);
  EXPECT_EQ(at(cost_of(moe, l, Framework::megatron).spent, Cause::launch), 0);
}

TEST(Overlap, ExpertsAreLaunchedOneByOneAndNeverAtTheRateOfOneBatchedKernel) {
  const Model moe = *model::model_from_zoo("qwen3-30b-a3b");
  Layout l = spread(8, 1);
  l.ep = 8;
  check(l, moe);
  KernelTime kernels(GpuModel::named("h100-sxm"));
  Count seen = 0;
  make_schedule(moe, l, Framework::megatron, 0).tally([&](const Entry& entry, Count) {
    if (entry.kind != Kind::gemm || !entry.gemm.grouped) return;
    ++seen;
    EXPECT_EQ(kernels_of(entry), moe.experts / l.ep);
    const Gemm batched = cublas_gemm(entry.gemm, entry.dtype);
    Gemm one = batched;
    one.batch = 1;
    const double us = kernels.us(entry) - kernels.accumulation_us(entry.gemm);
    EXPECT_GT(us, 1.01 * kernels.gemm_us(batched));
    EXPECT_LE(us, 1.001 * static_cast<double>(batched.batch) * kernels.gemm_us(one));
  });
  EXPECT_GE(seen, 6);  // up and down: forward, gradients of input and of weights
}

TEST(Overlap, TheRingOfContextParallelismIsBookedAsContext) {
  // Messages slow enough to show: what attention does not hide counts under cp, and nothing under pp.
  Layout l = spread(1, 1, 8);
  Machine slow = find_machine("dgx-h100");
  slow.inside.gb_per_s /= 50;
  check(l, model_7b);
  const StepCost cost = Step(model_7b, l, Framework::megatron, 0).cost(slow);
  EXPECT_GT(at(cost.spent, Cause::cp), 0);
  EXPECT_EQ(at(cost.spent, Cause::pp), 0);
  // In backward the gradients of keys and values are sent as well: the ring has three times its forward
  // messages.
  Count forward = 0, backward = 0;
  make_schedule(model_7b, l, Framework::megatron, 0).tally([&](const Entry& entry, Count count) {
    if (entry.kind != Kind::comm || entry.group != "cp" || entry.op != Op::send) return;
    (entry.phase == Phase::backward ? backward : forward) += count;
  });
  EXPECT_EQ(forward, 7 * model_7b.layers);
  EXPECT_EQ(backward, 2 * forward);
}

TEST(Overlap, DecodingReadsItsCache) {
  Layout l;
  l.mode = Mode::decode;
  l.micro_batch = 32;
  l.flags.cuda_graphs = true;
  l.seq = 1024;
  const double brief = cost_of(model_7b, l, Framework::textbook).step_us;
  l.seq = 3072;
  const double longer = cost_of(model_7b, l, Framework::textbook).step_us;
  // 2,048 more tokens of 32 sequences: 2·4096 values of 2 bytes per token and layer, at no more than 3.35
  // TB/s.
  const double bytes = 2048.0 * 32 * 2 * 4096 * 2 * 32;
  EXPECT_GT(longer - brief, bytes / 3.35e6);
  EXPECT_LT(longer - brief, 2 * bytes / 3.35e6);
}

}  // namespace
}  // namespace medley::cost

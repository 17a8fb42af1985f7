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
  EXPECT_LT(hidden.step_us, 0.97 * exposed.step_us);
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

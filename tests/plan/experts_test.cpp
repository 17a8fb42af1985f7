// Expert parallelism: groups, shards and volumes of experts that are sharded over other ranks than the
// layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "plan/groups.hpp"
#include "plan/helpers.hpp"
#include "plan/view.hpp"

namespace medley::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Layout spread(int dp, int tp, int ep, int etp) {
  Layout l = layout(dp, tp, 1);
  l.ep = ep;
  l.etp = etp;
  l.sp = tp > 1;
  l.zero = 1;
  return l;
}

}  // namespace

// As Megatron-Core's expert rank generator on 8 ranks with tp 2: experts take the ranks of a stage in order.
TEST(ExpertGroups, ExpertsOfSizeOneCrossTensorGroups) {
  const Layout l = spread(4, 2, 4, 1);
  EXPECT_THAT(group_ranks(l, 5, "tp"), ElementsAre(4, 5));
  EXPECT_THAT(group_ranks(l, 5, "ep"), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(group_ranks(l, 5, "edp"), ElementsAre(1, 5));
  EXPECT_THAT(group_ranks(l, 5, "etp"), ElementsAre(5));
  EXPECT_THAT(group_ranks(l, 5, "tp_ep"), ElementsAre(4, 5, 6, 7));
  Layout whole = spread(4, 2, 2, 0);  // the default: an expert's shards are a tensor group
  EXPECT_THAT(group_ranks(whole, 5, "ep"), ElementsAre(5, 7));
  EXPECT_THAT(group_ranks(whole, 5, "edp"), ElementsAre(1, 5));
  EXPECT_THAT(group_ranks(whole, 5, "tp_ep"), ElementsAre(4, 5, 6, 7));
}

TEST(ExpertGroups, PartitionEveryStage) {
  Layout l = spread(4, 4, 4, 2);
  l.pp = 2;
  l.cp = 2;
  for (const char* group : {"ep", "etp", "edp", "tp_ep"}) {
    std::set<std::vector<Count>> groups;
    std::size_t members = 0;
    for (Count rank = 0; rank < l.world(); ++rank) {
      const auto ranks = group_ranks(l, rank, group);
      EXPECT_THAT(ranks, testing::Contains(rank)) << group;
      if (groups.insert(ranks).second) members += ranks.size();
    }
    EXPECT_EQ(members, static_cast<std::size_t>(l.world())) << group;
  }
  EXPECT_EQ(group_ranks(l, 0, "edp").size(), 4u);  // 4·4·2 ranks of a stage over 2 shards of 4 experts
}

TEST(ExpertTensor, OneNeedsNoGatheringAndKeepsTheVolumeOfTheExchange) {
  const Layout sharded = spread(8, 2, 4, 0), whole = spread(8, 2, 4, 1);
  const auto with = rows(mixture(), sharded, Framework::megatron),
             without = rows(mixture(), whole, Framework::megatron);
  const auto experts = [](const std::vector<Row>& rows, Op op) {
    Count count = 0;
    for (const Row& r : rows) count += r.module == "mlp.experts" && r.op == op ? r.count : 0;
    return count;
  };
  EXPECT_GT(experts(with, Op::all_gather), 0);
  EXPECT_EQ(experts(without, Op::all_gather) + experts(without, Op::reduce_scatter), 0);
  EXPECT_DOUBLE_EQ(wire(with, "ep"), wire(without, "ep"));
  // Whole experts are twice as large on a rank and have twice as many replicas.
  const View a(mixture(), sharded, 0), b(mixture(), whole, 0);
  EXPECT_EQ(a.expert_dp_group, 2);
  EXPECT_EQ(b.expert_dp_group, 4);
  const auto matrices = [](const View& view) {
    Count all = 0;
    for (const LocalTensor& t : view.tensors()) all += t.expert() && t.tensor->matrix ? t.elements : 0;
    return all;
  };
  EXPECT_EQ(matrices(b), 2 * matrices(a));
}

TEST(ExpertTensor, AllRanksOfAStageMayHoldDifferentExperts) {
  Model m = mixture();
  m.experts = 16;
  Layout l = spread(8, 2, 16, 1);
  EXPECT_GT(operations(rows(m, l, Framework::megatron), Op::all_to_all, "ep", Phase::forward).count, 0);
  l.etp = 0;
  EXPECT_THAT(refusal([&] { rows(m, l, Framework::megatron); }), HasSubstr("dp times cp 8 is not divisible by ep 16"));
  l.etp = 2;
  EXPECT_THAT(refusal([&] { rows(m, l, Framework::megatron); }), HasSubstr("not divisible by ep 16"));
  l.etp = 3;
  EXPECT_THAT(refusal([&] { rows(m, l, Framework::megatron); }),
              HasSubstr("dp times cp times tp 16 is not divisible by etp times ep 48"));
  EXPECT_THAT(refusal([&] { rows(gpt(), spread(8, 2, 1, 1), Framework::megatron); }), HasSubstr("has no experts"));
  l.etp = 1;
  EXPECT_THAT(refusal([&] { rows(m, l, Framework::deepspeed); }), HasSubstr("only megatron"));
}

// Bytes of memory-bound kernels whose module starts with a name, over one step.
static Count streamed(const Model& m, Layout l, std::string_view module, Phase phase,
                      Framework f = Framework::megatron) {
  check(l, m);
  Count bytes = 0;
  make_schedule(m, l, f, 0).tally([&](const Entry& entry, Count count) {
    if (entry.kind == Kind::memory && entry.phase == phase && entry.module.starts_with(module))
      bytes += entry.bytes * count;
  });
  return bytes;
}

// Megatron-Core adds the biases of gpt-oss's experts and clamps their gates in eager PyTorch, unless its
// fused grouped MLP does.
TEST(ExpertKernels, BiasesAndClampsPassThroughMemory) {
  const Model m = *model_from_zoo("gpt-oss-120b");
  Layout l = spread(64, 1, 64, 0);
  l.seq = 4096;
  const Count rows = 4096 * 4;  // top 4
  const double one_pass = 36.0 * static_cast<double>(rows) * 2880 * 2;
  const auto passes = [&](std::string_view module, Phase phase) {
    return static_cast<double>(streamed(m, l, module, phase)) / one_pass;
  };
  EXPECT_NEAR(passes("mlp.experts.bias", Phase::forward), 23.3, 0.01);
  EXPECT_NEAR(passes("mlp.experts.bias", Phase::backward), 29.8, 0.01);
  EXPECT_NEAR(passes("mlp.experts.clamp", Phase::forward), 2 * 7.9, 0.01);
  EXPECT_NEAR(passes("mlp.experts.clamp", Phase::backward), 2 * 16.1, 0.01);
  EXPECT_EQ(streamed(*model_from_zoo("qwen3-30b-a3b"), l, "mlp.experts.bias", Phase::forward), 0);
  const Count activation = streamed(m, l, "mlp.experts.activation", Phase::forward);
  l.flags.recompute_modules.expert_activation = true;
  EXPECT_EQ(streamed(m, l, "mlp.experts.activation", Phase::recompute), activation);
  l.flags.recompute_modules = {};
  l.flags.fused_grouped_mlp = true;
  EXPECT_EQ(streamed(m, l, "mlp.experts", Phase::backward), 0);
}

TEST(Recomputation, ModulesRunAgain) {
  Model m = mixture();
  m.seq = 2048;
  Layout l = spread(8, 1, 8, 0);
  EXPECT_EQ(streamed(m, l, "norm", Phase::recompute), 0);
  l.flags.recompute_modules.norms = true;
  EXPECT_EQ(streamed(m, l, "norm", Phase::recompute), streamed(m, l, "norm", Phase::forward));
  const Model deepseek = *model_from_zoo("deepseek-v3");
  l.flags.recompute_modules.latent_projections = true;
  check(l, deepseek);
  Count products = 0;
  make_schedule(deepseek, l, Framework::megatron, 0).tally([&](const Entry& entry, Count count) {
    products += entry.kind == Kind::gemm && entry.phase == Phase::recompute ? count : 0;
  });
  EXPECT_EQ(products, 2 * 61);  // the up-projections of queries and of keys and values
}

TEST(Activation, SquaredReluIsTwoFunctionsWhereNothingFusesIt) {
  Model m = gpt();
  m.squared_relu = true;
  Layout l = layout(8, 1, 1);
  const Count fused = streamed(m, l, "mlp.activation", Phase::forward);
  l.flags.activation_fusion = false;
  EXPECT_EQ(streamed(m, l, "mlp.activation", Phase::forward), 2 * fused);
  EXPECT_EQ(3 * streamed(m, l, "mlp.activation", Phase::backward), 10 * fused * 3 / 2);
}

}  // namespace medley::plan

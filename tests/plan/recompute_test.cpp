// What runs again in the backward pass.
#include <gtest/gtest.h>

#include <map>

#include "plan/helpers.hpp"

namespace medley::plan {
namespace {

std::map<Kind, Count> recomputed(const Model& m, Layout l, Framework framework) {
  check(l, m);
  std::map<Kind, Count> counts;
  make_schedule(m, l, framework, 0).tally([&](const Entry& entry, Count count) {
    if (entry.phase == Phase::recompute) counts[entry.kind] += count;
  });
  return counts;
}

TEST(Recomputation, PerOperationRepeatsEverySecondProductAndNoAttention) {
  Layout l = layout(8, 1, 1);
  l.zero = 3;
  l.recompute = Recompute::full;
  const auto full = recomputed(gpt(), l, Framework::fsdp2);
  l.recompute = Recompute::per_op;
  auto per_op = recomputed(gpt(), l, Framework::fsdp2);
  EXPECT_EQ(per_op[Kind::attention], 0);
  EXPECT_EQ(per_op[Kind::gemm], full.at(Kind::gemm) / 2);
  EXPECT_EQ(per_op[Kind::memory], full.at(Kind::memory));
}

TEST(Recomputation, SelectiveRepeatsAttentionOnly) {
  Layout l = layout(8, 1, 1);
  l.recompute = Recompute::selective;
  auto selective = recomputed(gpt(), l, Framework::megatron);
  EXPECT_EQ(selective[Kind::attention], 8);
  EXPECT_EQ(selective[Kind::gemm], 0);
}

}  // namespace
}  // namespace medley::plan

// What nanotron issues for its gradients, compared with its sources.
#include <gtest/gtest.h>

#include "plan/helpers.hpp"

namespace medley::plan {

TEST(Nanotron, ReducesInTheLastBackwardPassOrAfterItWithZero) {
  const Model m = gpt();
  Layout l = layout(4, 2, 1);
  l.global_batch = 16;
  l.sp = true;
  const auto plain = rows(m, l, Framework::nanotron);
  const Total reduced = operations(plain, Op::all_reduce, "dp", Phase::backward);
  EXPECT_GT(reduced.count, 1);
  EXPECT_EQ(operations(plain, Op::all_reduce, "dp", Phase::grad_sync).count, 0);
  l.zero = 1;  // no DDP: one blocking all_reduce of everything, then the gather of the parameters
  const auto sharded = rows(m, l, Framework::nanotron);
  EXPECT_EQ(operations(sharded, Op::all_reduce, "dp", Phase::backward).count, 0);
  EXPECT_EQ(operations(sharded, Op::all_reduce, "dp", Phase::grad_sync).count, 1);
  EXPECT_EQ(operations(sharded, Op::all_reduce, "dp", Phase::grad_sync).bytes, reduced.bytes);
  EXPECT_EQ(operations(sharded, Op::all_gather, "dp", Phase::optimizer).bytes * 2, reduced.bytes);
}

// DDP's hook reduces the f32 sums of all tensors of a bucket in one call; buckets are as large as DDP's of
// the 16-bit gradients.
TEST(Nanotron, ReducesABucketAtOnce) {
  Layout l = layout(4, 1, 1);
  l.global_batch = 4;
  const auto buckets = [&](const Layout& with, Framework framework) {
    return operations(rows(gpt(), with, framework), Op::all_reduce, "dp", Phase::backward).count;
  };
  EXPECT_EQ(buckets(l, Framework::nanotron), buckets(l, Framework::ddp));
  Layout wide = l;
  wide.flags.bucket_bytes = Count{1} << 40;
  EXPECT_LT(buckets(wide, Framework::nanotron), buckets(l, Framework::nanotron));
}

TEST(Nanotron, CopiesEveryTensorOfEveryRankAfterTheGather) {
  Layout l = layout(4, 1, 1);
  l.zero = 1;
  l.global_batch = 4;
  const auto copies = [&](int dp) {
    l.dp = dp;
    l.global_batch = dp;
    int kernels = 0;
    make_schedule(gpt(), l, Framework::nanotron, 0).tally([&](const Entry& e, Count) {
      if (e.module == "unflatten") kernels += e.loop ? e.kernels : 0;
    });
    return kernels;
  };
  EXPECT_GT(copies(4), 0);
  EXPECT_EQ(copies(8), 2 * copies(4));
}

}  // namespace medley::plan

#include "shape/capacity.hpp"

#include <gtest/gtest.h>

#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

TEST(Capacity, LargestMicroBatchIsTheEdge) {
  const Gpu& gpu = find_gpu("h200-sxm");
  const Model m = zoo_model("gpt3-2.7b");
  Workload w = workload(m, {});
  const Count most = largest_micro_batch(gpu, m, w);
  ASSERT_GT(most, 1);
  w.layout.global_batch = w.layout.micro_batch = most;
  EXPECT_TRUE(fits(gpu, m, w));
  w.layout.global_batch = w.layout.micro_batch = most + 1;
  EXPECT_FALSE(fits(gpu, m, w));
}

TEST(Capacity, TooLargeAModelFitsNoMicroBatch) {
  const Model m = zoo_model("llama-2-70b");
  EXPECT_EQ(largest_micro_batch(find_gpu("a100-40-sxm"), m, workload(m, {})), 0);
  EXPECT_TRUE(micro_batch_changes(find_gpu("a100-40-sxm"), m, workload(m, {})).empty());
}

TEST(Capacity, DecodeHoldsWeightsAndCache) {
  const Model m = zoo_model("llama-2-7b");  // 2 bytes × 6.74 B weights; 512 KiB of cache a token
  const double bytes = memory_bytes(m, workload(m, {.micro_batch = 8, .mode = Mode::decode}));
  const double weights = 2 * double(plan::count_parameters(m).total), cache = 8 * 4096.0 * 512 * 1024;
  EXPECT_NEAR(bytes, weights + cache, 0.01 * bytes);
}

TEST(Capacity, MicroBatchesDoubleUpToTheLargest) {
  const Gpu& gpu = find_gpu("h200-sxm");
  const Model m = zoo_model("gpt3-2.7b");
  const Workload w = workload(m, {});
  const auto changes = micro_batch_changes(gpu, m, w);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.front().now, 2);
  EXPECT_EQ(changes.back().now, largest_micro_batch(gpu, m, w));
}

}  // namespace
}  // namespace medley::shape

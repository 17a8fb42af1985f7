// Kernels that a framework runs only for some shapes.
#include <gtest/gtest.h>

#include "plan/helpers.hpp"

namespace medley::plan {
namespace {

int softmax_kernels(const Layout& layout, Framework framework) {
  int kernels = 0;
  make_schedule(gpt(), layout, framework, 0).tally([&](const Entry& e, Count count) {
    if (e.module == "attention.softmax" || e.module == "attention.mask")
      kernels += e.kernels * static_cast<int>(count);
  });
  return kernels;
}

// Megatron's FusedScaleMaskSoftmax asks for a number of heads times sequences that four divides.
TEST(Megatron, ItsSoftmaxKernelTakesFourRowsAtOnce) {
  Layout l = layout(1, 4, 1);  // 16 heads: 4 a rank
  l.micro_batch = l.global_batch = 1;
  l.seq = 1024;
  l.flags.flash_attention = false;
  EXPECT_EQ(softmax_kernels(l, Framework::megatron), 2 * 8);
  l.tp = 8;  // 2 heads a rank
  EXPECT_EQ(softmax_kernels(l, Framework::megatron), 2 * 8 * 5);
  l.micro_batch = l.global_batch = 2;
  EXPECT_EQ(softmax_kernels(l, Framework::megatron), 2 * 8);
}

}  // namespace
}  // namespace medley::plan

// Kernels that a framework runs only for some shapes.
#include <gtest/gtest.h>

#include "plan/helpers.hpp"

namespace medley::plan {
namespace {

int softmax_kernels(const Layout& layout, Framework framework) {
  int kernels = 0;
  make_schedule(gpt(), layout, framework, 0).tally([&](const Entry& e, Count count) {
    if (e.module == "attention.softmax" || e.module == "attention.mask") kernels += e.kernels * static_cast<int>(count);
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

Count bytes_of(std::string_view module, const Layout& layout, Framework framework, const Model& model) {
  Count bytes = 0;
  make_schedule(model, layout, framework, 0).tally([&](const Entry& e, Count count) {
    if (e.module == module && e.kind == Kind::memory) bytes += e.bytes * count;
  });
  return bytes;
}

// torch.optim alone keeps its moments in the parameters' type; the other frameworks have f32 state and a
// master copy.
TEST(Ddp, AdamReadsAndWritesItsStateInTheTypeOfTheParameters) {
  Layout l = layout(1, 1, 1);
  l.micro_batch = l.global_batch = 1;
  l.seq = 1024;
  const Count parameters = count_parameters(gpt()).total;
  EXPECT_EQ(bytes_of("adam", l, Framework::ddp, gpt()), 14 * parameters);
  EXPECT_EQ(bytes_of("adam", l, Framework::textbook, gpt()), 30 * parameters);
  l.dtype = DType::f32;
  EXPECT_EQ(bytes_of("adam", l, Framework::ddp, gpt()), 28 * parameters);
}

// The views of queries and keys that plain PyTorch rotates are strided: the same passes take longer, unless
// compiled.
TEST(Ddp, RotatesStridedViewsSlowlyUnlessCompiled) {
  Model rotary = gpt();
  rotary.positions = Positions::rotary;
  Layout l = layout(1, 1, 1);
  l.micro_batch = l.global_batch = 1;
  l.seq = 1024;
  EXPECT_GT(bytes_of("attention.rotary", l, Framework::ddp, rotary),
            bytes_of("attention.rotary", l, Framework::textbook, rotary));
  l.flags.compile = true;
  EXPECT_EQ(bytes_of("attention.rotary", l, Framework::ddp, rotary),
            bytes_of("attention.rotary", l, Framework::textbook, rotary));
}

}  // namespace
}  // namespace medley::plan

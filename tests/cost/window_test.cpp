// sliding_window takes effect in the FLOPs of attention, in the cache of keys and values and in the time of a
// step.
#include <gtest/gtest.h>

#include "cost/cost.hpp"
#include "cost/flops.hpp"
#include "cost/memory.hpp"
#include "model/read_model.hpp"

namespace medley::cost {
namespace {

constexpr const char* shape = "family=llama,h=4096,a=32,kv=8,layers=32,ffn=14336,vocab=32000,seq=32768";

Model with_window(const std::string& keys) { return model::read_model(std::string(shape) + keys); }

Layout layout_for(const Model& m, Mode mode, Count seq = 32768) {
  Layout l;
  l.mode = mode;
  l.seq = seq;
  l.flags.cuda_graphs = true;  // one token of one sequence is too little work for an eager host
  check(l, m);
  return l;
}

double step_us(const Model& m, const Layout& l) {
  return Step(m, l, Framework::textbook, 0).cost(find_machine("dgx-h200")).step_us;
}

const Model full = with_window(""), sliding = with_window(",window=4096"), half = with_window(",window=4096,spans=WF");

TEST(Window, FlopsCountThePairsInIt) {
  const Layout l = layout_for(full, Mode::train);
  const double squares = 3.0 * 32768 * 4.0 * 32768 * 4096 * 32, other = model_flops(full, l) - squares;
  const double share = (4096.0 * 32768 - 4096.0 * 4095 / 2) / (32768.0 * 32769 / 2);
  EXPECT_NEAR(model_flops(sliding, l), other + squares * share, 1e-9 * squares);
  EXPECT_NEAR(model_flops(half, l), other + squares * (1 + share) / 2, 1e-9 * squares);
  const Layout decode = layout_for(full, Mode::decode);
  EXPECT_NEAR(model_flops(full, decode) - model_flops(sliding, decode), 4.0 * (32768 - 4096) * 4096 * 32, 1);
}

TEST(Window, TheCacheKeepsNoMore) {
  const auto cache = [](const Model& m, Count seq) {
    Model empty = m;
    empty.window = 1;
    empty.spans.clear();
    const Layout l = layout_for(m, Mode::decode, seq);
    return memory_per_gpu(m, l, Framework::textbook, 0).activations -
           memory_per_gpu(empty, l, Framework::textbook, 0).activations;
  };
  const Count token = 8 * 256 * 2, layers = 32;
  EXPECT_EQ(cache(full, 32768), (32768 - 1) * token * layers);
  EXPECT_EQ(cache(sliding, 32768), (4096 - 1) * token * layers);
  EXPECT_EQ(cache(half, 32768), (32768 + 4096 - 2) * token * layers / 2);
  EXPECT_EQ(cache(sliding, 2048), cache(full, 2048));
}

TEST(Window, StepsAreShorterByTheAttentionSaved) {
  for (const Mode mode : {Mode::train, Mode::prefill, Mode::decode}) {
    const Layout l = layout_for(full, mode);
    EXPECT_LT(step_us(sliding, l), step_us(half, l));
    EXPECT_LT(step_us(half, l), step_us(full, l));
  }
  // With a 32k sequence, attention is two thirds of the step; a window of 4k leaves a quarter of it,
  // including edges.
  const Layout l = layout_for(full, Mode::train);
  const Model narrow = with_window(",window=1");
  const double attention = step_us(full, l) - step_us(narrow, l);
  const double left = (step_us(sliding, l) - step_us(narrow, l)) / attention;
  EXPECT_GT(left, 0.2);
  EXPECT_LT(left, 0.3);
  const Layout brief = layout_for(full, Mode::train, 2048);
  EXPECT_EQ(step_us(sliding, brief), step_us(full, brief));
}

TEST(Window, UnfusedAttentionComputesAllPairs) {
  Layout l = layout_for(full, Mode::train, 8192);
  l.flags.flash_attention = false;
  EXPECT_EQ(step_us(sliding, l), step_us(full, l));
}

TEST(Window, LinearLayersCostWhatTheirStateDoes) {
  const Model linear = with_window(",spans=LLLLLLLF");
  const Layout l = layout_for(linear, Mode::train);
  EXPECT_LT(step_us(linear, l), step_us(full, l));
  EXPECT_GT(count_parameters(linear).total, count_parameters(full).total) << "gates, and keys of every head";
  const Layout decode = layout_for(linear, Mode::decode);
  EXPECT_LT(memory_per_gpu(linear, decode, Framework::textbook, 0).activations,
            memory_per_gpu(full, decode, Framework::textbook, 0).activations / 4);
}

}  // namespace
}  // namespace medley::cost

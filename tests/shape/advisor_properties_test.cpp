// Laws for all shapes, not only those of the zoo.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "shape/advice.hpp"
#include "shape/losses.hpp"
#include "shape/search.hpp"
#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

const GpuModel& h200() {
  static const GpuModel model = GpuModel::named("h200-sxm");
  return model;
}

Model any_model() {
  Model m = zoo_model("gpt3-1.3b");
  m.head_dim = *rc::gen::element<Count>(64, 72, 80, 96, 128);
  m.heads = m.kv_heads = *rc::gen::inRange<Count>(4, 48);
  m.hidden = m.heads * m.head_dim;
  m.ffn = 2 * *rc::gen::inRange<Count>(m.hidden / 2, 3 * m.hidden);
  m.layers = *rc::gen::inRange<Count>(2, 40);
  m.vocab = *rc::gen::inRange<Count>(1000, 140000);
  m.gated = *rc::gen::arbitrary<bool>();
  return m;
}

Workload any_workload(const Model& m) {
  return workload(m, {.micro_batch = *rc::gen::inRange<Count>(1, 9),
                      .seq = 8 * *rc::gen::inRange<Count>(16, 300),
                      .flash = *rc::gen::arbitrary<bool>()});
}

void holds(const std::function<void()>& property) { EXPECT_TRUE(rc::check(property)); }

TEST(AdvisorProperties, TimesAreFiniteAndPositive) {
  holds([] {
    const Model m = any_model();
    Pricer pricer(h200());
    const Step step = step_time(pricer, m, any_workload(m));
    RC_ASSERT(std::isfinite(step.step_us) && step.step_us > 0);
    RC_ASSERT(step.efficiency > 0 && step.efficiency <= 1.02);
    RC_ASSERT(step.layer_us * double(m.layers) <= step.step_us);
  });
}

// Quantisation may make a product with more work as fast as a smaller one, or a little faster if the smaller
// one is misaligned. Doubling an aligned extent adds whole tiles: it must never be faster by more than the
// model's own error.
TEST(AdvisorProperties, TwiceTheWorkIsNotFaster) {
  holds([] {
    Gemm gemm{.name = {},
              .m = 64 * *rc::gen::inRange<Count>(1, 200),
              .n = 64 * *rc::gen::inRange<Count>(1, 200),
              .k = 64 * *rc::gen::inRange<Count>(1, 200),
              .batch = 1,
              .layout = *rc::gen::element(GemmLayout::TN, GemmLayout::NN, GemmLayout::NT)};
    const double once = h200().predict_us(gemm);
    Count& extent = **rc::gen::element(&gemm.m, &gemm.n, &gemm.k);
    extent *= 2;
    RC_ASSERT(h200().predict_us(gemm) >= 0.9 * once);
  });
}

TEST(AdvisorProperties, LossesExplainTheTimeAndAreNotNegative) {
  holds([] {
    const Model m = any_model();
    for (const auto& priced : price_operators(h200(), m, any_workload(m))) {
      if (!priced.is_gemm()) continue;
      double lost = 0;
      for (const auto& [cause, us] : by_cause(priced.gemm.lost)) {
        RC_ASSERT(us >= 0);
        lost += us;
      }
      RC_ASSERT(lost <= priced.gemm.us * 1.0001);
    }
  });
}

TEST(AdvisorProperties, AdviceIsNeverPredictedSlower) {
  holds([] {
    const Model m = any_model();
    const Workload w = any_workload(m);
    Pricer pricer(h200());
    const double base = step_time(pricer, m, w).tokens_per_s;
    for (const auto& advice : advise(pricer, m, w)) {
      RC_ASSERT(advice.net_gain() > 0);
      if (advice.change.knob == Knob::micro_batch) continue;
      Workload changed = advice.change.work;
      const double now = step_time(pricer, advice.change.model, changed).tokens_per_s;
      RC_ASSERT(std::abs(now / base - 1 - advice.gain) < 1e-9);
      if (advice.change.knob == Knob::vocabulary) RC_ASSERT(now > base);
    }
  });
}

TEST(AdvisorProperties, MemoHasNoEffectOnTheResult) {
  holds([] {
    const Model m = any_model();
    const Workload w = any_workload(m);
    Pricer warm(h200()), cold(h200());
    for (int i = 0; i < 3; ++i) {
      const Model other = any_model();
      step_time(warm, other, any_workload(other));
    }
    RC_ASSERT(step_time(warm, m, w).step_us == step_time(cold, m, w).step_us);
  });
}

}  // namespace
}  // namespace medley::shape

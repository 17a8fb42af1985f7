#include "shape/operators.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "model/zoo.hpp"
#include "plan/framework.hpp"
#include "shape/step.hpp"
#include "shape_fixtures.hpp"

namespace medley::shape {
namespace {

const Gemm& find(const Operators& operators, std::string_view name, Pass pass) {
  for (const auto& op : operators)
    if (op.name == name && op.pass == pass && std::holds_alternative<Gemm>(op.work)) return std::get<Gemm>(op.work);
  throw std::runtime_error("no such product: " + std::string(name));
}

// (m, n, k) with tokens first, as the paper prints them
std::array<Count, 4> rows_first(const Gemm& g) { return {g.n, g.m, g.k, g.batch}; }
using Extents = std::array<Count, 4>;

TEST(Operators, FollowThePapersTableForADenseModel) {
  const Model m = zoo_model("gpt3-2.7b");
  const Workload w = workload(m, {.micro_batch = 4, .tp = 2, .flash = false});
  const auto layer = layer_operators(m, w, false);
  EXPECT_EQ(rows_first(find(layer, "qkv", Pass::forward)), (Extents{8192, 3840, 2560, 1}));
  EXPECT_EQ(rows_first(find(layer, "score", Pass::forward)), (Extents{2048, 2048, 80, 64}));
  EXPECT_EQ(rows_first(find(layer, "values", Pass::forward)), (Extents{2048, 80, 2048, 64}));
  EXPECT_EQ(rows_first(find(layer, "projection", Pass::forward)), (Extents{8192, 2560, 1280, 1}));
  EXPECT_EQ(rows_first(find(layer, "mlp up", Pass::forward)), (Extents{8192, 5120, 2560, 1}));
  EXPECT_EQ(rows_first(find(layer, "mlp down", Pass::forward)), (Extents{8192, 2560, 5120, 1}));
  EXPECT_EQ(rows_first(find(head_operators(m, w), "logits", Pass::forward)), (Extents{8192, 25129, 2560, 1}));
}

TEST(Operators, BackwardTransposesTheExtents) {
  const Model m = zoo_model("gpt3-2.7b");
  const auto layer = layer_operators(m, workload(m, {.micro_batch = 4}), false);
  const Gemm& dgrad = find(layer, "mlp up", Pass::dgrad);
  const Gemm& wgrad = find(layer, "mlp up", Pass::wgrad);
  EXPECT_EQ(rows_first(dgrad), (Extents{8192, 2560, 10240, 1}));
  EXPECT_EQ(dgrad.layout, GemmLayout::NN);
  EXPECT_EQ(rows_first(wgrad), (Extents{10240, 2560, 8192, 1}));
  EXPECT_EQ(wgrad.layout, GemmLayout::NT);
}

TEST(Operators, ForwardFlopsAreThePapersFormula) {
  for (const char* name : {"gpt3-2.7b", "gpt-neox-20b", "opt-13b"}) {
    const Model m = zoo_model(name);
    const Workload w = workload(m, {.micro_batch = 2, .flash = false, .mode = Mode::prefill});
    double flops = 0;
    for (const auto& op : layer_operators(m, w, false)) flops += op.flops();
    const double b = 2, s = double(m.seq), h = double(m.hidden);
    EXPECT_DOUBLE_EQ(flops, 24 * b * s * h * h + 4 * b * s * s * h) << name;
  }
}

TEST(Operators, GroupedQueriesShareKeysAndReplicateThemWhereTheyMust) {
  const Model m = zoo_model("llama-2-70b");  // 64 heads, 8 key-value heads
  EXPECT_EQ(find(layer_operators(m, workload(m, {.tp = 8}), false), "qkv", Pass::forward).m, (8 + 2) * 128);
  EXPECT_EQ(find(layer_operators(m, workload(m, {.tp = 16}), false), "qkv", Pass::forward).m, (4 + 2) * 128);
}

TEST(Operators, GatedWidthIsTwoProductsUpAndOneDown) {
  const Model m = zoo_model("llama-2-7b");
  const auto layer = layer_operators(m, workload(m, {}), false);
  EXPECT_EQ(find(layer, "mlp gate", Pass::forward).m, 11008);
  EXPECT_EQ(find(layer, "mlp up", Pass::forward).m, 11008);
  EXPECT_EQ(find(layer, "mlp down", Pass::forward).k, 11008);
}

TEST(Operators, ExpertsGetTheirShareOfTheTokens) {
  const Model m = zoo_model("mixtral-8x7b");
  const auto layer = layer_operators(m, workload(m, {.micro_batch = 1, .seq = 4096}), true);
  EXPECT_EQ(rows_first(find(layer, "expert up", Pass::forward)), (Extents{1024, 14336, 4096, 8}));
  EXPECT_EQ(rows_first(find(layer, "router", Pass::forward)), (Extents{4096, 8, 4096, 1}));
  // four tokens choose eight of eight experts with repetition: not all are chosen
  const auto decode = layer_operators(m, workload(m, {.micro_batch = 4, .seq = 4096, .mode = Mode::decode}), true);
  const Gemm& up = find(decode, "expert up", Pass::forward);
  EXPECT_LT(up.batch, 8);
  EXPECT_GE(up.batch * up.n, 8);
}

TEST(Operators, DecodeIsOneTokenPerSequenceAndForwardOnly) {
  const Model m = zoo_model("llama-3-8b");
  const Workload w = workload(m, {.micro_batch = 32, .mode = Mode::decode});
  for (const auto& op : layer_operators(m, w, false)) {
    EXPECT_EQ(op.pass, Pass::forward);
    if (const auto* gemm = std::get_if<Gemm>(&op.work)) {
      EXPECT_EQ(gemm->n, 32);
    }
    if (const auto* fused = std::get_if<Attention>(&op.work)) {
      EXPECT_EQ(fused->seq_q, 1);
      EXPECT_EQ(fused->seq_k, m.seq);
      EXPECT_FALSE(fused->causal);
    }
  }
  EXPECT_EQ(find(head_operators(m, w), "logits", Pass::forward).n, 32);
}

TEST(Operators, PrefillNeedsLogitsOfTheLastTokenOnly) {
  const Model m = zoo_model("llama-3-8b");
  const Workload w = workload(m, {.micro_batch = 3, .mode = Mode::prefill});
  EXPECT_EQ(find(head_operators(m, w), "logits", Pass::forward).n, 3);
  EXPECT_EQ(find(layer_operators(m, w, false), "qkv", Pass::forward).n, 3 * m.seq);
}

TEST(Operators, LatentAttentionIsAbsorbedWhileDecoding) {
  Model m = zoo_model("llama-2-7b");
  m.heads = m.kv_heads = 128;
  m.latent = {
      .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128};
  const auto train = layer_operators(m, workload(m, {.tp = 2}), false);
  EXPECT_EQ(find(train, "q down", Pass::forward).m, 1536);  // whole on every rank
  EXPECT_EQ(find(train, "q up", Pass::forward).m, 64 * 192);
  EXPECT_EQ(find(train, "kv up", Pass::wgrad).n, 64 * 256);
  const auto decode = layer_operators(m, workload(m, {.micro_batch = 8, .tp = 2, .mode = Mode::decode}), false);
  EXPECT_EQ(find(decode, "absorb keys", Pass::forward).batch, 64);
  EXPECT_THROW(find(decode, "kv up", Pass::forward), std::runtime_error);
}

TEST(Operators, FullRecomputeRepeatsTheForwardOnce) {
  const Model m = zoo_model("gpt2");
  Workload w = workload(m, {});
  const auto plain = layer_operators(m, w, false);
  w.layout.recompute = plan::Recompute::full;
  const auto full = layer_operators(m, w, false);
  const auto forwards = std::ranges::count(plain, Pass::forward, &Operator::pass);
  EXPECT_EQ(std::ranges::count(full, Pass::recompute, &Operator::pass), forwards);
  EXPECT_EQ(full.size(), plain.size() + std::size_t(forwards));
}

TEST(Operators, CompiledChainsMoveFewerBytes) {
  const Model m = zoo_model("llama-2-7b");
  Workload w = workload(m, {.flash = false});
  const auto moved = [&] {
    double bytes = 0;
    for (const auto& op : layer_operators(m, w, false))
      if (const auto* stream = std::get_if<Stream>(&op.work)) bytes += stream->bytes * double(op.count);
    return bytes;
  };
  const double eager = moved();
  w.layout.flags.compile = true;
  EXPECT_LT(moved(), 0.6 * eager);
}

// The planner writes the same products into its schedules: the two lists must not diverge.
TEST(Operators, AreTheProductsOfThePlannersSchedule) {
  using Key = std::array<Count, 4>;
  for (const char* name : {"gpt3-2.7b", "llama-2-70b", "falcon-40b", "mixtral-8x7b", "qwen3-4b"}) {
    for (const bool flash : {true, false}) {
      Model m = zoo_model(name);
      m.fused_qkv = m.fused_gate = true;  // as Megatron runs them, with its padding
      m.vocab = plan::round_up(m.vocab, 256);
      const Workload w = workload(m, {.micro_batch = 2, .tp = 2, .seq = 2048, .flash = flash, .sp = m.moe()});
      std::map<Key, Count> planned, listed;
      plan::make_schedule(m, w.layout, plan::Framework::megatron, 0).tally([&](const plan::Entry& entry, Count count) {
        if (entry.kind == plan::Kind::gemm)
          planned[{entry.gemm.m, entry.gemm.n, entry.gemm.k, entry.gemm.batch}] += count;
      });
      const auto add = [&](const Operators& operators, Count times) {
        for (const auto& op : operators)
          if (const auto* gemm = std::get_if<Gemm>(&op.work)) listed[rows_first(*gemm)] += op.count * times;
      };
      const Count routed = m.moe_layers();
      if (routed < m.layers) add(layer_operators(m, w, false), m.layers - routed);
      if (routed > 0) add(layer_operators(m, w, true), routed);
      add(head_operators(m, w), 1);
      EXPECT_EQ(listed, planned) << name << (flash ? " fused" : " unfused");
    }
  }
}

}  // namespace
}  // namespace medley::shape

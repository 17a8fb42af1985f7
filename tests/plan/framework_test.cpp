// What each framework issues, operation by operation, compared with the tables in its sources.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/helpers.hpp"
#include "plan/view.hpp"

namespace medley::plan {

using testing::HasSubstr;

constexpr Count plane = Count{2048} * 1024 * 2;  // b·s·h·e of the small model, b = 1

TEST(Megatron, TensorParallelOperations) {
  Layout l = layout(1, 4, 1);
  l.global_batch = 3;
  const auto plain = rows(gpt(), l, Framework::megatron);
  EXPECT_EQ(operations(plain, Op::all_reduce, "tp", Phase::backward).count,
            (2 * 8 + 1) * 3);  // layers and head
  Count forward = 0, loss = 0;
  for (const Row& r : plain) {
    if (r.op == Op::all_reduce && r.phase == Phase::forward && r.bytes == plane) forward += r.count;
    if (r.module == "loss") loss += r.count;
    if (r.module == "loss") {
      EXPECT_EQ(r.bytes, 2048 * 4);
    }
    if (r.phase == Phase::backward && r.group == "tp") {
      EXPECT_FALSE(r.exposed);
    }
  }
  EXPECT_EQ(forward, (2 * 8 + 1) * 3);  // layers and embedding
  EXPECT_EQ(loss, 3 * 3);
  l.sp = true;
  const auto sp = rows(gpt(), l, Framework::megatron);
  EXPECT_EQ(operations(sp, Op::all_gather, "tp", Phase::forward).count, (2 * 8 + 1) * 3);
  // Learned positions are added to whole embeddings: Megatron all_reduces those, with or without sequence
  // parallelism.
  EXPECT_EQ(operations(sp, Op::reduce_scatter, "tp", Phase::forward).count, 2 * 8 * 3);
  Model rotary = gpt();
  rotary.positions = Positions::rotary;
  EXPECT_EQ(operations(rows(rotary, l, Framework::megatron), Op::reduce_scatter, "tp", Phase::forward).count,
            (2 * 8 + 1) * 3);
  EXPECT_EQ(operations(sp, Op::all_gather, "tp", Phase::backward).count,
            (4 * 8 + 1 + 1) * 3);  // head, embedding
  EXPECT_EQ(operations(sp, Op::reduce_scatter, "tp", Phase::backward).count, (2 * 8 + 1) * 3);
}

TEST(Megatron, GradientsInBucketsAndDistributedOptimizer) {
  const Model m = gpt(4096, 32, 8);
  Layout l = layout(8, 1, 1);
  const Count psi = count_parameters(m).total + (51200 - m.vocab) * m.hidden;
  auto plan = rows(m, l, Framework::megatron);
  EXPECT_EQ(operations(plan, Op::all_reduce, "dp", Phase::grad_sync).bytes, 4 * psi);
  EXPECT_EQ(operations(plan, Op::all_reduce, "dp", Phase::grad_sync).count, 1);
  l.zero = 1;
  plan = rows(m, l, Framework::megatron);
  EXPECT_NEAR(static_cast<double>(operations(plan, Op::reduce_scatter, "dp", Phase::grad_sync).bytes),
              4.0 * static_cast<double>(psi), 1e4);
  EXPECT_NEAR(static_cast<double>(operations(plan, Op::all_gather, "dp", Phase::optimizer).bytes),
              2.0 * static_cast<double>(psi), 1e4);
  l.flags.overlap_grad_reduce = true;
  plan = rows(m, l, Framework::megatron);
  EXPECT_EQ(operations(plan, Op::reduce_scatter, "dp", Phase::grad_sync).count, 0);
  EXPECT_GT(operations(plan, Op::reduce_scatter, "dp", Phase::backward).count, 10);  // 40e6 elements each
}

TEST(Megatron, PipelineEnds) {
  Layout l = layout(1, 1, 4);
  l.global_batch = 8;
  l.flags.variable_seq_lengths = true;
  const auto first = rows(gpt(), l, Framework::megatron, 0), middle = rows(gpt(), l, Framework::megatron, 1);
  EXPECT_EQ(operations(first, Op::all_reduce, "embedding", Phase::grad_sync).bytes, Count{51200} * 1024 * 4);
  EXPECT_EQ(operations(middle, Op::all_reduce, "embedding", Phase::grad_sync).count, 0);
  Count shapes = 0;
  for (const Row& r : middle) shapes += r.group == "pp" && r.bytes == 24 ? r.count : 0;
  EXPECT_EQ(shapes, 4 * 8);  // one with every message
  l.zero = 3;
  EXPECT_THAT(refusal([&] { rows(gpt(), l, Framework::megatron); }), HasSubstr("zero is 3"));
}

TEST(DeepSpeed, VolumesOfTheStages) {
  const Model m = *model_from_zoo("pythia-2.8b");
  const double psi_bytes = 2.0 * static_cast<double>(count_parameters(m).total), share = 7.0 / 8;
  Layout l = layout(8, 1, 1);
  l.global_batch = 8 * 4;
  for (const auto& [stage, passes] : {std::pair{1, 3.0}, {2, 2.0 * 4 + 1}, {3, 3.0 * 4}}) {
    l.zero = stage;
    EXPECT_NEAR(wire(rows(m, l, Framework::deepspeed), "dp") / (psi_bytes * share), passes, 0.02) << "stage " << stage;
  }
  l.zero = 1;
  const auto one = rows(m, l, Framework::deepspeed);
  EXPECT_EQ(operations(one, Op::all_reduce, "dp", Phase::grad_sync).count, 6);  // ⌈2.78e9 / 5e8⌉
  EXPECT_EQ(operations(one, Op::all_gather, "dp", Phase::optimizer).count, 1);
  l.flags.multi_rank_bucket_allreduce = false;
  EXPECT_EQ(operations(rows(m, l, Framework::deepspeed), Op::reduce, "dp", Phase::grad_sync).bytes,
            static_cast<Count>(psi_bytes));
  EXPECT_THAT(refusal([] {
                Layout p = layout(1, 1, 2);
                p.zero = 2;
                rows(gpt(), p, Framework::deepspeed);
              }),
              HasSubstr("zero is 2"));
}

TEST(NeoX, SmallMessagesBetweenStages) {
  Layout l = layout(1, 2, 2);
  l.global_batch = 4;
  const auto plan = rows(gpt(), l, Framework::neox);
  Count meta = 0, parts = 0, masks = 0;
  for (const Row& r : plan) {
    if (r.group != "pp" || r.op != Op::send) continue;
    meta += r.bytes == 8 * (2 + 7) ? r.count : 0;
    parts += r.bytes == plane / 2 ? r.count : 0;
    masks += r.bytes == Count{2048} * 2048 * 2 ? r.count : 0;
  }
  EXPECT_EQ(meta, 4);
  EXPECT_EQ(parts, 4);
  EXPECT_EQ(masks, 4);
  Model parallel = gpt();
  parallel.parallel_block = true;  // attention and MLP share one reduction in forward
  l = layout(1, 2, 1);
  EXPECT_EQ(operations(rows(parallel, l, Framework::neox), Op::all_reduce, "tp", Phase::forward).count, 8 + 1 + 3);
}

TEST(Ddp, FirstBucketIsSmall) {
  const Model m = *model_from_zoo("gpt2");
  Layout l = layout(4, 1, 1);
  l.dtype = DType::f32;
  l.global_batch = 8;
  const auto plan = rows(m, l, Framework::ddp);
  const Total all = operations(plan, Op::all_reduce, "dp", Phase::backward);
  EXPECT_EQ(all.bytes, 4 * count_parameters(m).total);
  EXPECT_GE(all.count, 10);
  l.flags.no_sync = false;
  EXPECT_EQ(operations(rows(m, l, Framework::ddp), Op::all_reduce, "dp", Phase::backward).count, 2 * all.count);
  EXPECT_THAT(refusal([&] { rows(m, layout(2, 2, 1), Framework::ddp); }), HasSubstr("ddp"));
}

TEST(Fsdp2, TwoGatheringsButForTheRoot) {
  const Model m = gpt();
  Layout l = layout(8, 1, 1);
  l.global_batch = 16;
  const auto plan = rows(m, l, Framework::fsdp2);
  const Count groups = 8 + 1;
  EXPECT_EQ(operations(plan, Op::all_gather, "dp", Phase::forward).count +
                operations(plan, Op::all_gather, "dp", Phase::backward).count,
            2 * (2 * groups - 1));
  EXPECT_EQ(operations(plan, Op::reduce_scatter, "dp", Phase::backward).count, 2 * groups);
  l.hsdp = 2;
  const auto hybrid = rows(m, l, Framework::fsdp2);
  EXPECT_EQ(operations(hybrid, Op::all_reduce, "hsdp", Phase::backward).count, 2 * groups);
  EXPECT_EQ(operations(hybrid, Op::all_reduce, "hsdp", Phase::backward).bytes * 4,
            operations(hybrid, Op::reduce_scatter, "fsdp", Phase::backward).bytes);
}

TEST(Pipelines, UnevenOnesAreSplitAsTheFrameworksDo) {
  const auto counts = [](const Model& m, const Layout& l, ViewOptions::Uneven uneven) {
    std::vector<Count> out;
    for (int stage = 0; stage < l.pp; ++stage) {
      Count layers = 0;
      for (const Chunk& chunk : chunks_of(m, l, stage, {.uneven = uneven})) layers += chunk.count;
      out.push_back(layers);
    }
    return out;
  };
  Layout l = layout(1, 1, 8);
  using Uneven = ViewOptions::Uneven;
  // Llama 405B: 126 layers on 8 stages; embedding and head count as one layer each.
  EXPECT_EQ(counts(gpt(1024, 16, 126), l, Uneven::count_ends), (std::vector<Count>{15, 16, 16, 16, 16, 16, 16, 15}));
  EXPECT_EQ(counts(gpt(1024, 16, 126), l, Uneven::first_stages), (std::vector<Count>{16, 16, 16, 16, 16, 16, 15, 15}));
  l.virtual_stages = 4;  // Qwen3 235B: 94 layers on 8 × 4
  EXPECT_EQ(counts(gpt(1024, 16, 94), l, Uneven::count_ends), (std::vector<Count>{11, 12, 12, 12, 12, 12, 12, 11}));
  // nanotron balances by cost even where layers divide: this head costs as much as four layers.
  Model wide = gpt(2048, 32, 16);
  wide.gated = true;
  wide.ffn = 8192;
  wide.vocab = 131072;
  EXPECT_EQ(counts(wide, layout(1, 1, 4), Uneven::by_cost), (std::vector<Count>{6, 5, 5, 0}));
  Layout nanotron = layout(1, 1, 4);
  nanotron.global_batch = 8;
  EXPECT_FALSE(rows(wide, nanotron, Framework::nanotron).empty());
  Layout megatron = layout(1, 1, 4);
  megatron.global_batch = 8;
  EXPECT_FALSE(rows(gpt(1024, 16, 6), megatron, Framework::megatron).empty());
}

TEST(Experts, NoFrameworkLosesTheirWork) {
  // Tokens × top_k times three matrices each; a tensor rank computes its share.
  const Model m = mixture();
  const auto flops = [&](Framework framework, int tp) {
    Layout l = layout(1, tp, 1);
    l.sp = tp > 1 && framework == Framework::megatron;
    check(l, m);
    double total = 0;
    make_schedule(m, l, framework, 0).tally([&](const Entry& e, Count count) {
      if (e.kind == Kind::gemm && e.module.starts_with("mlp.experts"))
        total += e.gemm.flops() * static_cast<double>(count);
    });
    return total;
  };
  for (const Framework framework : {Framework::textbook, Framework::megatron, Framework::deepspeed, Framework::neox})
    EXPECT_NEAR(flops(framework, 2) / flops(framework, 1), 0.5, 0.01) << name(framework);
}

TEST(DeepSpeed, OverlapCommHidesTheBoundaryOfStageOne) {
  const Model m = *model_from_zoo("pythia-2.8b");
  Layout l = layout(8, 1, 1);
  l.global_batch = 16;
  l.zero = 1;
  EXPECT_GT(operations(rows(m, l, Framework::deepspeed), Op::all_reduce, "dp", Phase::grad_sync).count, 0);
  l.flags.overlap_comm = true;
  const auto hidden = rows(m, l, Framework::deepspeed);
  EXPECT_EQ(operations(hidden, Op::all_reduce, "dp", Phase::grad_sync).count, 0);
  EXPECT_EQ(operations(hidden, Op::all_reduce, "dp", Phase::backward).count,
            6);  // once, in the last micro-batch
}

// all_gather_into_tensor gathers a parameter group at once; only AICB's mock uses the key.
TEST(DeepSpeed, AllgatherBucketSizeHasNoEffect) {
  const Model m = *model_from_zoo("pythia-2.8b");
  for (const int stage : {1, 2, 3}) {
    Layout small = layout(8, 1, 1), large = small;
    small.zero = large.zero = stage;
    small.flags.allgather_bucket_elements = 1'000'000;
    large.flags.allgather_bucket_elements = 5'000'000'000;
    EXPECT_EQ(wire(rows(m, small, Framework::deepspeed), "dp"), wire(rows(m, large, Framework::deepspeed), "dp"));
    EXPECT_EQ(rows(m, small, Framework::deepspeed).size(), rows(m, large, Framework::deepspeed).size());
  }
}

// Megatron looks up the label's logit and reduces it before the sum; DTensor takes the log-softmax first.
TEST(Fsdp2, TensorParallelLossIsDTensors) {
  const auto loss = [](Framework framework, bool sharded) {
    Layout l = layout(2, 4, 1);
    l.flags.loss_parallel = sharded;
    std::vector<std::pair<Op, ReduceOp>> out;
    make_schedule(
        gpt(),
        [&] {
          check(l, gpt());
          return l;
        }(),
        framework, 0)
        .walk([&](const Entry& e, const Place&) {
          if (e.kind == Kind::comm && e.module == "loss") out.emplace_back(e.op, e.reduce);
        });
    return out;
  };
  const auto dtensor = loss(Framework::fsdp2, true);
  ASSERT_EQ(dtensor.size(), 3u);
  EXPECT_EQ(dtensor[0].second, ReduceOp::max);
  std::vector<std::string> whys;
  for (const Row& r : rows(gpt(), layout(2, 4, 1), Framework::fsdp2))
    if (r.module == "loss") whys.emplace_back(r.why);
  EXPECT_THAT(whys, testing::Contains("loss of the label's shard"));
  EXPECT_THAT(whys, testing::Not(testing::Contains("logit of the label")));
  const auto gathered = loss(Framework::fsdp2, false);
  ASSERT_EQ(gathered.size(), 1u);
  EXPECT_EQ(gathered[0].first, Op::all_gather);
}

TEST(Ulysses, LatentAttentionTradesItsOwnHeadSizes) {
  Model m = gpt(2048, 16, 4);
  m.latent = {
      .q_lora_rank = 0, .kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128};
  Layout l = layout(1, 1, 1);
  l.cp = 4;
  l.context = ContextKind::ulysses;
  Count keys = 0, values = 0;
  for (const Row& r : rows(m, l, Framework::deepspeed)) {
    if (r.group != "cp" || r.phase != Phase::forward) continue;
    if (r.why.starts_with("keys")) keys = r.bytes;
    if (r.why.starts_with("values")) values = r.bytes;
  }
  const Count tokens = 2048 / 4;
  EXPECT_EQ(keys, tokens * 16 * 192 * 2);
  EXPECT_EQ(values, tokens * 16 * 128 * 2);
}

TEST(Fsdp1, FlatParametersAndShardGradOp) {
  const Model m = gpt();
  Layout l = layout(8, 1, 1);
  l.zero = 3;
  const auto full = rows(m, l, Framework::fsdp1);
  EXPECT_EQ(operations(full, Op::all_gather, "dp", Phase::backward).count, 8);
  l.zero = 2;  // SHARD_GRAD_OP keeps what the forward pass gathered
  const auto kept = rows(m, l, Framework::fsdp1);
  EXPECT_EQ(operations(kept, Op::all_gather, "dp", Phase::backward).count, 0);
  EXPECT_EQ(operations(kept, Op::reduce_scatter, "dp", Phase::backward).count, 8 + 1);
  EXPECT_THAT(refusal([&] { rows(m, layout(2, 2, 1), Framework::fsdp1); }), HasSubstr("fsdp1"));
}

TEST(Fsdp, CopiesParametersAndGradientsAroundItsCollectives) {
  // FSDP2 copies out of the gather's buffer, twice per layer, and into the scatter's; FSDP1 concatenates and
  // divides.
  Layout l;
  l.dp = 8;
  l.zero = 3;
  const Model m = *model_from_zoo("llama-2-7b");
  check(l, m);
  const auto copied = [&](Framework framework, std::string_view module) {
    Count bytes = 0;
    make_schedule(m, l, framework, 0).tally([&](const Entry& entry, Count count) {
      if (entry.module == module) bytes += entry.bytes * count;
    });
    return static_cast<double>(bytes) / 6.738e9;
  };
  // the root group is gathered once, so a little less than twice 4 bytes a parameter
  EXPECT_NEAR(copied(Framework::fsdp2, "parameters.copy"), 8, 0.4);
  EXPECT_NEAR(copied(Framework::fsdp2, "gradients.copy"), 4, 0.1);
  EXPECT_EQ(copied(Framework::fsdp1, "parameters.copy"), 0);
  EXPECT_NEAR(copied(Framework::fsdp1, "gradients.copy"), 8, 0.1);
}

TEST(Defaults, AreThoseOfTodayAndSaid) {
  Layout l = layout(1, 1, 1);
  EXPECT_TRUE(l.flags.flash_attention);
  EXPECT_EQ(l.dtype, DType::bf16);
  EXPECT_THAT(assumptions(gpt(), l, Framework::megatron), HasSubstr("fused attention, bf16"));
  EXPECT_THAT(assumptions(gpt(), l, Framework::ddp), HasSubstr("eager kernels"));
  l.flags.compile = true;
  EXPECT_THAT(assumptions(gpt(), l, Framework::ddp), HasSubstr("compiled kernels"));
  l.pp = 2;
  EXPECT_THAT(assumptions(gpt(), l, Framework::nanotron), HasSubstr("distributed_debug=on across hosts"));
  l.flags.distributed_debug = false;
  EXPECT_THAT(assumptions(gpt(), l, Framework::nanotron), HasSubstr("distributed_debug=off"));
}

TEST(Plan, ATrillionParametersAndNoOverflow) {
  Model m = gpt(25600, 160, 128);
  Layout l = layout(6, 8, 64);
  l.micro_batch = 1;
  l.global_batch = 3072;
  const auto plan = rows(m, l, Framework::megatron, 0);
  for (const Row& r : plan) EXPECT_GT(r.bytes, 0);
  EXPECT_GT(count_parameters(m).total, 1'000'000'000'000);
  l.seq = Count{1} << 50;
  EXPECT_NE(refusal([&] { rows(m, l, Framework::megatron, 0); }), "");
}

}  // namespace medley::plan

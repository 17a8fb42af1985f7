// Runs with settings other than planned: differences are found, and the setting is named as a hypothesis that predicts
// every row. Nothing else is accepted as an explanation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconcile/made_run.hpp"

namespace medley::reconcile::test {
namespace {

using plan::Framework;
using ::testing::HasSubstr;

std::string hypotheses_of(const Report& report) {
  std::string out;
  for (const Explanation& e : report.explanations) out += e.sentence + "\n";
  return out;
}

TEST(Reconcile, the_same_plan_has_no_differences) {
  for (const char* layout : {"dp=4", "dp=2,tp=2,sp=on", "dp=2,pp=2,global_batch=8", "dp=4,zero=1"}) {
    const Plan p = plan_of(layout, Framework::megatron);
    const Report report = held_against(p, made_run(p, 3));
    EXPECT_EQ(report.differences(), 0u) << layout << "\n" << text_of(report);
    EXPECT_GT(report.matched(), 0u);
  }
}

struct Setting {
  const char *planned, *ran;
  Framework framework;
  const char* sentence;
};
const Setting settings[] = {
    {"dp=4,zero=1,reduce_bucket_size=200000",
     "dp=4,zero=1,reduce_bucket_size=200000,use_multi_rank_bucket_allreduce=off", Framework::deepspeed,
     "use_multi_rank_bucket_allreduce is off"},
    {"dp=4,zero=1", "dp=4,zero=3", Framework::deepspeed, "ZeRO stage 3 ran, not 1"},
    {"dp=4,zero=2,reduce_bucket_size=200000,overlap_comm=on", "dp=4,zero=2,reduce_bucket_size=200000,overlap_comm=off",
     Framework::deepspeed, "overlap_comm is off"},
    {"dp=4,zero=1", "dp=4,zero=1,reduce_bucket_size=200000", Framework::deepspeed, "reduce_bucket_size is"},
    {"dp=4,global_batch=16,bucket_cap_mb=0.5", "dp=4,global_batch=16,bucket_cap_mb=0.5,no_sync=off", Framework::ddp,
     "no_sync() is not used"},
    {"dp=4,bucket_cap_mb=1", "dp=4,bucket_cap_mb=0.25", Framework::ddp, "bucket_cap_mb is"},
    {"dp=4,bucket_cap_mb=0.25,dtype=bf16", "dp=4,bucket_cap_mb=0.25,dtype=f32", Framework::ddp,
     "activations and parameters are in f32, not bf16"},
    {"dp=4,bucket_cap_mb=0.25,dtype=bf16", "dp=4,bucket_cap_mb=0.5,dtype=f32", Framework::ddp, "in f32, not bf16"},
    {"tp=4", "tp=4,sp=on", Framework::megatron, "sequence parallelism is on"},
    {"dp=2,tp=2,global_batch=4", "dp=2,tp=2,global_batch=16", Framework::megatron, "8 micro-batches, not 2"},
    {"dp=2,tp=2,global_batch=4", "dp=2,tp=2,global_batch=8,micro_batch=2", Framework::megatron,
     "a micro-batch has 2 samples, not 1"},
    {"dp=2,tp=2,seq=64", "dp=2,tp=2,seq=32", Framework::megatron, "samples have"},
    {"tp=2,sp=on", "tp=2,sp=on,recompute=full", Framework::megatron, "recomputed in the backward pass (full)"},
    {"dp=4,shard_embeddings_apart=on", "dp=4,shard_embeddings_apart=on,reshard_after_forward=off", Framework::fsdp2,
     "reshard_after_forward is off"},
};

TEST(Reconcile, another_setting_is_named) {
  for (const Setting& s : settings) {
    const Plan planned = plan_of(s.planned, s.framework), ran = plan_of(s.ran, s.framework);
    const Report report = held_against(planned, made_run(ran, 2));
    EXPECT_GT(report.differences(), 0u) << s.ran;
    EXPECT_EQ(report.unexplained(), 0u) << s.ran << "\n" << hypotheses_of(report) << text_of(report);
    EXPECT_THAT(hypotheses_of(report), HasSubstr(s.sentence)) << s.ran;
    for (const Explanation& e : report.explanations) EXPECT_GT(e.predicted, e.parameters) << e.sentence;
  }
}

TEST(Reconcile, a_setting_that_changes_a_single_row_is_only_suggested) {
  const Plan planned = plan_of("tp=2", Framework::megatron), ran = plan_of("tp=2,recompute=full", Framework::megatron);
  const Report report = held_against(planned, made_run(ran, 2));
  EXPECT_GT(report.unexplained(), 0u);
  ASSERT_EQ(report.suggestions.size(), 1u);
  EXPECT_THAT(report.suggestions.front().sentence, HasSubstr("recomputed in the backward pass (full)"));
}

TEST(Reconcile, one_wrong_row_refutes_another_setting) {
  for (const Setting& s : settings) {
    const Plan planned = plan_of(s.planned, s.framework), ran = plan_of(s.ran, s.framework);
    MadeRun run = made_run(ran, 2);
    auto& step = run.ranks.back().steps.back();
    std::size_t largest = 0;
    for (std::size_t i = 0; i < step.size(); ++i)
      if (step[i].event.bytes > step[largest].event.bytes) largest = i;
    step[largest].event.bytes += 4096;
    const Report report = held_against(planned, run);
    EXPECT_GT(report.unexplained(), 0u) << s.ran << "\n" << hypotheses_of(report);
  }
}

TEST(Reconcile, odd_steps_and_ranks_are_named) {
  const Plan p = plan_of("dp=4,bucket_cap_mb=0.25", Framework::ddp);
  MadeRun run = made_run(p, 10);
  run.ranks[2].steps[6].push_back(run.ranks[2].steps[6].front());
  const Report report = held_against(p, run);
  ASSERT_EQ(report.differences(), 1u) << text_of(report);
  const RankResult& rank = report.ranks[2];
  ASSERT_EQ(rank.results.size(), 2u);
  EXPECT_EQ(rank.results[1].steps, (std::vector<std::size_t>{7}));
  EXPECT_EQ(rank.results[1].lines.front().verdict, Verdict::count);
}

TEST(Reconcile, operations_outside_the_marked_steps_are_noted) {
  const Plan p = plan_of("dp=4,bucket_cap_mb=0.25", Framework::ddp);
  MadeRun run = made_run(p, 3);
  EXPECT_TRUE(held_against(p, run).notes.empty());
  MadeOperation op = run.ranks[2].steps[1].front();
  op.event.bytes = 64 << 20;
  op.scope = trace::step_scope;
  run.ranks[2].steps[1].push_back(op);
  const Report report = held_against(p, run);
  EXPECT_EQ(report.differences(), 0u) << text_of(report);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes.front(), HasSubstr("1 operations (67108864 B) of rank 2 are outside the marked steps"));
}

TEST(Reconcile, fields_a_source_does_not_carry_are_unknown_until_ignored) {
  const Plan p = plan_of("dp=4,bucket_cap_mb=0.25", Framework::ddp);
  MadeRun run = made_run(p, 2);
  for (MadeRank& rank : run.ranks)
    for (MadeStep& step : rank.steps)
      for (MadeOperation& op : step) op.event.unknown = {Field::reduce, Field::async};
  const Report strict = held_against(p, run);
  EXPECT_EQ(strict.unexplained(), 2u) << text_of(strict);
  Options options;
  options.ignored = {Field::reduce};
  EXPECT_EQ(held_against(p, run, options).unexplained(), 1u);
  options.ignored.add(Field::async);
  EXPECT_EQ(held_against(p, run, options).differences(), 0u);
}

/// Tokens moved from one rank's experts to another's, in both directions of both passes.
TEST(Reconcile, uneven_routing_must_conserve_tokens_and_repeat_in_the_backward_pass) {
  const Plan p = plan_of("dp=2,ep=2", Framework::deepspeed, "h=128,a=4,layers=4,vocab=1024,seq=64,experts=4,top_k=2");
  const std::int64_t row = 128 * 2;
  const auto routed = [&](std::int64_t less, std::int64_t more, bool backward) {
    MadeRun run = made_run(p, 1);
    for (MadeRank& rank : run.ranks)
      for (MadeOperation& op : rank.steps[0]) {
        if (op.event.op != Op::all_to_all || op.event.bytes < 16 * row) continue;
        if (!backward && op.scope.starts_with("backward")) continue;
        op.event.op = Op::all_to_allv;
        op.event.bytes += rank.rank == 0 ? -less * row : more * row;
      }
    return run;
  };
  const Report right = held_against(p, routed(3, 3, true));
  EXPECT_GT(right.differences(), 0u);
  EXPECT_EQ(right.unexplained(), 0u) << text_of(right);
  EXPECT_THAT(hypotheses_of(right), HasSubstr("tokens are routed unevenly"));
  EXPECT_GT(held_against(p, routed(3, 4, true)).unexplained(), 0u) << "tokens out of nowhere";
  MadeRun once = routed(0, 0, true);
  for (MadeRank& rank : once.ranks) {
    for (MadeOperation& op : rank.steps[0]) {
      if (op.event.op != Op::all_to_allv) continue;
      op.event.bytes += rank.rank == 0 ? -row : row;
      break;
    }
  }
  EXPECT_GT(held_against(p, once).unexplained(), 0u) << "one exchange that nothing repeats";
}

}  // namespace
}  // namespace medley::reconcile::test

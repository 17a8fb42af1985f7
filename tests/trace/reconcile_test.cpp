// Plans against plans: what differs is found, and the switch that was changed is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/read_layout.hpp"
#include "reconcile/causes.hpp"

namespace medley::reconcile {
namespace {

using ::testing::HasSubstr;

Plan plan_of(const std::string& layout, plan::Framework framework, const std::string& model = "pythia-70m") {
  Plan out{plan::read_model(model), plan::read_layout(layout), framework};
  plan::check(out.layout, out.model);
  return out;
}

Items items_of(const Plan& p, int rank = 0) {
  return expected_items(plan::make_schedule(p.model, p.layout, p.framework, rank), p.layout, rank);
}

/// A run that did what `ran` says, held against `planned`.
Result held_against(const Plan& planned, const Plan& ran) {
  const Items observed = items_of(ran);
  Result result = compare(items_of(planned), observed, 0);
  explain(result, planned, observed);
  return result;
}

std::string causes(const Result& result) {
  std::string all;
  for (const Line& line : result.lines) {
    if (line.verdict != Verdict::matched) all += (line.cause.empty() ? "(none)" : line.cause) + "\n";
  }
  return all;
}

TEST(Reconcile, the_same_plan_has_no_differences) {
  for (const char* layout : {"dp=4", "dp=2,tp=2,sp=on", "dp=2,pp=2,global_batch=8", "dp=4,zero=1"}) {
    const Plan p = plan_of(layout, plan::Framework::megatron);
    const Result result = held_against(p, p);
    EXPECT_EQ(result.differences(), 0u) << layout << "\n" << causes(result);
    EXPECT_GT(result.lines.size(), 0u);
  }
}

struct Switch {
  const char *planned, *ran;
  plan::Framework framework;
  const char* cause;
};

TEST(Reconcile, a_switch_that_was_changed_is_named) {
  const Switch switches[] = {
      {"dp=4,zero=1", "dp=4,zero=1,use_multi_rank_bucket_allreduce=off", plan::Framework::deepspeed,
       "use_multi_rank_bucket_allreduce is off"},
      {"dp=4,global_batch=16", "dp=4,global_batch=16,no_sync=off", plan::Framework::ddp,
       "no_sync() is not used"},
      {"dp=4", "dp=4,bucket_cap_mb=100", plan::Framework::ddp, "bucket_cap_mb"},
      {"dp=4,zero=1", "dp=4,zero=3", plan::Framework::deepspeed, "ZeRO stage 3 ran, not 1"},
      {"tp=4", "tp=4,sp=on", plan::Framework::megatron, "sequence parallelism is on"},
      {"dp=2,tp=2,global_batch=4", "dp=2,tp=2,global_batch=16", plan::Framework::megatron,
       "8 micro-batches, not 2"},
      {"tp=2", "tp=2,recompute=full", plan::Framework::megatron, "recomputed in the backward pass (full)"},
      {"dp=4", "dp=4,reshard_after_forward=off", plan::Framework::fsdp2, "reshard_after_forward is off"},
  };
  for (const Switch& s : switches) {
    const Result result = held_against(plan_of(s.planned, s.framework), plan_of(s.ran, s.framework));
    EXPECT_GT(result.differences(), 0u) << s.ran;
    EXPECT_EQ(result.unexplained(), 0u) << s.ran << "\n" << causes(result);
    EXPECT_THAT(causes(result), HasSubstr(s.cause)) << s.ran;
  }
}

Item item(Op op, std::int64_t bytes, std::int64_t count, std::vector<int> ranks = {0, 1}) {
  return {op, std::move(ranks), "g", bytes, count, DType::f32, {}, false};
}

Result compared(const Items& expected, const Items& observed) {
  Result result = compare(expected, observed, 0);
  explain(result, std::nullopt, observed);
  return result;
}

TEST(Reconcile, verdicts) {
  EXPECT_EQ(compared({item(Op::all_reduce, 8, 3)}, {item(Op::all_reduce, 8, 3)}).differences(), 0u);
  const auto first = [](const Result& r) { return std::pair(r.lines.at(0).verdict, r.lines.at(0).cause); };
  EXPECT_EQ(first(compared({item(Op::all_reduce, 800, 3)}, {item(Op::all_reduce, 800, 6)})),
            std::pair(Verdict::count,
                      std::string("2 times as often as planned: micro-batches, or layers, are more")));
  EXPECT_EQ(first(compared({item(Op::all_reduce, 800, 3)}, {item(Op::all_reduce, 1600, 3)})).first,
            Verdict::size);
  EXPECT_EQ(first(compared({item(Op::all_reduce, 800, 3)}, {})), std::pair(Verdict::missing, std::string()));
  EXPECT_THAT(first(compared({}, {item(Op::all_reduce, 4000, 1)})).second,
              HasSubstr("is none of the layout's groups"));
  EXPECT_THAT(first(compared({}, {item(Op::barrier, 0, 1)})).second,
              HasSubstr("a barrier of the program's own"));
  EXPECT_EQ(
      compared({item(Op::all_reduce, 8, 1, {0, 1})}, {item(Op::all_reduce, 8, 1, {0, 2})}).differences(), 2u);
}

TEST(Reconcile, the_same_bytes_in_other_buckets) {
  const Result result =
      compared({item(Op::all_reduce, 100, 1), item(Op::all_reduce, 300, 1)}, {item(Op::all_reduce, 50, 8)});
  EXPECT_EQ(result.unexplained(), 0u);
  EXPECT_THAT(causes(result), HasSubstr("the same bytes in other pieces"));
}

}  // namespace
}  // namespace medley::reconcile

// A hypothesis explains a run only where it holds: one operation, rank or step that deviates from it stays unexplained,
// and uneven routing of tokens excuses nothing but itself.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "reconcile/jobs.hpp"

namespace medley::reconcile::test {
namespace {

using plan::Framework;

constexpr std::int64_t token = 128 * 2;  // bytes of a token of `moe_model`

/// Damages a run; false where nothing in it fits.
using Damage = std::function<bool(MadeRun&)>;
struct Kind {
  const char* name;
  Damage damage;
};

struct Setting {
  const char *planned, *ran, *third;  ///< `third`: yet another value of the setting that differs
  Framework framework;
};
const Setting settings[] = {
    {"dp=4,bucket_cap_mb=1", "dp=4,bucket_cap_mb=0.25", "dp=4,bucket_cap_mb=0.125", Framework::ddp},
    {"dp=4,zero=1", "dp=4,zero=3", "dp=4,zero=2", Framework::deepspeed},
    {"dp=4,zero=1", "dp=4,zero=1,reduce_bucket_size=200000", "dp=4,zero=1,reduce_bucket_size=100000",
     Framework::deepspeed},
    {"dp=2,tp=2,global_batch=4", "dp=2,tp=2,global_batch=8,micro_batch=2", "dp=2,tp=2,global_batch=16,micro_batch=4",
     Framework::megatron},
    {"dp=2,tp=2,seq=64", "dp=2,tp=2,seq=32", "dp=2,tp=2,seq=128", Framework::megatron},
    {"tp=2,sp=on", "tp=2,sp=on,recompute=full", "tp=2,sp=off", Framework::megatron},
};

/// A true hypothesis, but for one operation, rank or step.
TEST(PartialHypothesis, a_hypothesis_that_fails_in_one_place_explains_nothing_there) {
  for (const Setting& s : settings) {
    const Plan planned = plan_of(s.planned, s.framework);
    const MadeRun ran = made_run(plan_of(s.ran, s.framework), 3), as_planned = made_run(planned, 3),
                  third = made_run(plan_of(s.third, s.framework), 3);
    ASSERT_EQ(held_against(planned, ran).unexplained(), 0u) << s.ran << text_of(held_against(planned, ran));
    const auto middle = [](MadeRun& run) -> MadeOperation& {
      MadeStep& step = run.ranks.back().steps[1];
      return step[step.size() / 2];
    };
    const std::vector<Kind> kinds = {
        {"another dtype",
         [&](MadeRun& run) {
           middle(run).event.dtype = DType::i8;
           return middle(run).event.op != Op::barrier;
         }},
        {"another reduction",
         [&](MadeRun& run) {
           middle(run).event.reduce = ReduceOp::product;
           return reduces(middle(run).event.op);
         }},
        {"blocking for async",
         [&](MadeRun& run) {
           middle(run).event.async = !middle(run).event.async;
           return true;
         }},
        {"another phase",
         [&](MadeRun& run) {
           MadeOperation& op = middle(run);
           op.scope = op.scope.starts_with("optimizer") ? "forward/x" : "optimizer/x";
           return true;
         }},
        {"8 B more",
         [&](MadeRun& run) {
           middle(run).event.bytes += 8;
           return true;
         }},
        {"dropped",
         [&](MadeRun& run) {
           MadeStep& step = run.ranks.back().steps[1];
           step.erase(step.begin() + static_cast<std::ptrdiff_t>(step.size() / 2));
           return true;
         }},
        {"neighbours exchanged",
         [&](MadeRun& run) {
           MadeStep& step = run.ranks.back().steps[1];
           for (std::size_t i = step.size() - 1; i > 0; --i) {
             if (step[i].event.bytes == step[i - 1].event.bytes) continue;
             std::swap(step[i], step[i - 1]);
             return true;
           }
           return false;
         }},
        {"one rank ran as planned",
         [&](MadeRun& run) {
           run.ranks.back() = as_planned.ranks.back();
           return true;
         }},
        {"one step ran as planned",
         [&](MadeRun& run) {
           for (std::size_t r = 0; r < run.ranks.size(); ++r) run.ranks[r].steps[1] = as_planned.ranks[r].steps[1];
           return true;
         }},
        {"one step of one rank ran as planned",
         [&](MadeRun& run) {
           run.ranks[0].steps[2] = as_planned.ranks[0].steps[2];
           return true;
         }},
        {"one rank ran with a third value",
         [&](MadeRun& run) {
           run.ranks.back() = third.ranks.back();
           return true;
         }},
        {"one step ran with a third value",
         [&](MadeRun& run) {
           for (std::size_t r = 0; r < run.ranks.size(); ++r) run.ranks[r].steps[1] = third.ranks[r].steps[1];
           return true;
         }},
    };
    for (const Kind& kind : kinds) {
      MadeRun run = ran;
      if (!kind.damage(run)) continue;
      const Report report = held_against(planned, run);
      EXPECT_GT(report.unexplained(), 0u) << s.ran << ": " << kind.name << "\n" << text_of(report);
    }
  }
}

/// Moves `tokens` tokens from the first rank of each group to the others, in the exchanges that `which`
/// selects.
void route(MadeRun& run, std::int64_t tokens, const std::function<bool(const MadeOperation&, std::size_t)>& which) {
  for (MadeRank& rank : run.ranks) {
    for (MadeStep& step : rank.steps) {
      std::size_t number = 0;
      for (MadeOperation& op : step) {
        if (op.event.op != Op::all_to_all || op.event.bytes < 64 * token || !which(op, number++)) continue;
        op.event.op = Op::all_to_allv;
        op.event.bytes += rank.rank == op.ranks.front()  ? -tokens * token
                          : rank.rank == op.ranks.back() ? tokens * token
                                                         : 0;
      }
    }
  }
}

TEST(PartialHypothesis, uneven_routing_excuses_nothing_else) {
  const Plan plan = plan_of("dp=4,ep=2", Framework::deepspeed, moe_model);
  const MadeRun good = made_run(plan, 2);
  const auto all = [](const MadeOperation&, std::size_t) { return true; };
  const auto forward = [](const MadeOperation& op, std::size_t) { return !op.scope.starts_with("backward"); };
  const auto held = [&](const std::function<void(MadeRun&)>& damage) {
    MadeRun run = good;
    damage(run);
    return held_against(plan, run);
  };
  const Report right = held([&](MadeRun& run) { route(run, 3, all); });
  ASSERT_GT(right.differences(), 0u);
  ASSERT_EQ(right.unexplained(), 0u) << text_of(right);
  EXPECT_GT(held([&](MadeRun& run) { route(run, 3, forward); }).unexplained(), 0u) << "only in the forward pass";
  EXPECT_GT(held([&](MadeRun& run) { route(run, 3, [&](auto& op, auto n) { return !forward(op, n); }); }).unexplained(),
            0u)
      << "only in the backward pass";
  EXPECT_GT(held([&](MadeRun& run) {
              route(run, 3, all);
              for (MadeRank& rank : run.ranks)
                for (MadeStep& step : rank.steps) {
                  const auto last = std::adjacent_find(step.begin(), step.end(), [](const auto& a, const auto& b) {
                    return a.event.op == Op::all_to_allv && b.event.op != Op::all_to_allv;
                  });
                  ASSERT_NE(last, step.end());
                  std::swap(last[0], last[1]);
                }
            }).unexplained(),
            0u)
      << "an exchange in another place of the step";
  EXPECT_GT(held([&](MadeRun& run) {
              route(run, 3, all);
              run.ranks.back().steps.back().back().event.bytes += 8;
            }).unexplained(),
            0u)
      << "8 B more in another operation";
  EXPECT_GT(held([&](MadeRun& run) {
              route(run, 3, all);
              for (MadeRank& rank : run.ranks)
                for (MadeOperation& op : rank.steps[0])
                  if (op.event.op == Op::all_to_allv) op.event.dtype = DType::f16;
            }).unexplained(),
            0u)
      << "another dtype of equal size";
}

}  // namespace
}  // namespace medley::reconcile::test

// Damage that a sum would not show: totals are conserved, operations change places or groups, one rank or one
// step deviates, or a true hypothesis holds everywhere but in one place. Reconcile accepts none of it and
// explains none of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "reconcile/made_run.hpp"

namespace medley::reconcile::test {
namespace {

using plan::Framework;

constexpr const char* moe = "h=128,a=4,layers=4,vocab=1024,seq=64,experts=4,top_k=2";
constexpr std::int64_t token = 128 * 2;  // bytes of a token of that model

struct Job {
  const char* layout;
  Framework framework;
  const char* model = "h=128,a=4,layers=4,vocab=1024,seq=64";
};
const Job jobs[] = {
    {"dp=4,bucket_cap_mb=0.25,dtype=f32", Framework::ddp},
    {"dp=4", Framework::fsdp2},
    {"dp=2,tp=2,sp=on,zero=1,global_batch=8", Framework::megatron},
    {"dp=2,tp=2,global_batch=8", Framework::megatron},
    {"pp=2,tp=2,global_batch=4", Framework::megatron},
    {"dp=4,zero=1", Framework::deepspeed},
    {"dp=4,zero=2,overlap_comm=on", Framework::deepspeed},
    {"dp=4,zero=3", Framework::deepspeed},
    {"dp=2,tp=2,zero=1", Framework::neox},
    {"dp=2,tp=2", Framework::nanotron},
    {"dp=4,ep=2", Framework::deepspeed, moe},
};

/// Damages a run; false where nothing in it fits.
using Damage = std::function<bool(MadeRun&)>;
struct Kind {
  const char* name;
  Damage damage;
};

/// The same damage to every step of every rank.
Damage everywhere(std::function<bool(MadeStep&)> damage) {
  return [damage](MadeRun& run) {
    bool any = false;
    for (MadeRank& rank : run.ranks)
      for (MadeStep& step : rank.steps) any = damage(step) || any;
    return any;
  };
}
/// To every step of the last rank.
Damage one_rank(std::function<bool(MadeStep&)> damage) {
  return [damage](MadeRun& run) {
    bool any = false;
    for (MadeStep& step : run.ranks.back().steps) any = damage(step) || any;
    return any;
  };
}
/// To the second step of every rank.
Damage one_step(std::function<bool(MadeStep&)> damage) {
  return [damage](MadeRun& run) {
    bool any = false;
    for (MadeRank& rank : run.ranks) any = damage(rank.steps[1]) || any;
    return any;
  };
}

/// The first two operations for which `fits` holds; npos without.
std::pair<std::size_t, std::size_t> pair_of(
    const MadeStep& step, const std::function<bool(const MadeOperation&, const MadeOperation&)>& fits,
    bool neighbours = false) {
  for (std::size_t i = 0; i < step.size(); ++i)
    for (std::size_t j = i + 1; j < (neighbours ? std::min(step.size(), i + 2) : step.size()); ++j)
      if (fits(step[i], step[j])) return {i, j};
  return {std::string::npos, std::string::npos};
}
/// Changes such a pair.
std::function<bool(MadeStep&)> with_pair(std::function<bool(const MadeOperation&, const MadeOperation&)> fits,
                                         std::function<void(MadeOperation&, MadeOperation&)> change,
                                         bool neighbours = false) {
  return [=](MadeStep& step) {
    const auto [i, j] = pair_of(step, fits, neighbours);
    if (i == std::string::npos) return false;
    change(step[i], step[j]);
    return true;
  };
}

bool alike(const MadeOperation& a, const MadeOperation& b) {
  return a.event.op == b.event.op && a.ranks == b.ranks && a.event.peer == b.event.peer;
}

std::vector<Kind> sizes_that_add_up() {
  const auto other_size = [](const auto& a, const auto& b) {
    return alike(a, b) && a.event.bytes != b.event.bytes && a.event.bytes > 0 && b.event.bytes > 0;
  };
  const auto swap_sizes = [](auto& a, auto& b) { std::swap(a.event.bytes, b.event.bytes); };
  const auto same_size = [](const auto& a, const auto& b) { return alike(a, b) && a.event.bytes > 128; };
  const auto move_bytes = [](auto& a, auto& b) { a.event.bytes -= 64, b.event.bytes += 64; };
  return {
      {"two sizes swapped, everywhere", everywhere(with_pair(other_size, swap_sizes))},
      {"two sizes swapped, one rank", one_rank(with_pair(other_size, swap_sizes))},
      {"two sizes swapped, one step", one_step(with_pair(other_size, swap_sizes))},
      {"64 B moved to another operation, everywhere", everywhere(with_pair(same_size, move_bytes))},
      {"64 B moved to another operation, one step", one_step(with_pair(same_size, move_bytes))},
      {"one twice, an equal one not at all",
       everywhere(with_pair(other_size, [](auto& a, auto& b) { b = a; }))},
      {"one doubled and another halved", everywhere(with_pair(same_size,
                                                              [](auto& a, auto& b) {
                                                                a.event.bytes *= 2;
                                                                b.event.bytes /= 2;
                                                              }))},
      {"padded to 512 B", everywhere([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step) {
           const std::int64_t padded = (op.event.bytes + 511) / 512 * 512;
           any = any || padded != op.event.bytes;
           op.event.bytes = padded;
         }
         return any;
       })},
      {"padded to 64 KiB, one rank", one_rank([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step) {
           const std::int64_t padded = (op.event.bytes + 65535) / 65536 * 65536;
           any = any || padded != op.event.bytes;
           op.event.bytes = padded;
         }
         return any;
       })},
      {"forward twice as large, backward as planned", everywhere([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step)
           if (op.scope.starts_with("forward")) op.event.bytes *= 2, any = true;
         return any;
       })},
  };
}

std::vector<Kind> other_fields() {
  const auto retype = [](DType from, DType to) {
    return [=](MadeStep& step) {
      bool any = false;
      for (MadeOperation& op : step)
        if (op.event.dtype == from && op.event.op != Op::barrier) op.event.dtype = to, any = true;
      return any;
    };
  };
  const auto last_op = [](std::function<bool(MadeOperation&)> change) {
    return [change](MadeStep& step) { return !step.empty() && change(step.back()); };
  };
  return {
      {"f16 on one rank", one_rank(retype(DType::bf16, DType::f16))},
      {"f16 in one step", one_step(retype(DType::bf16, DType::f16))},
      {"half as many bytes per element in the same size", everywhere(retype(DType::f32, DType::bf16))},
      {"i32 in the last operation", everywhere(last_op([](MadeOperation& op) {
         const bool fits = op.event.dtype == DType::f32 && op.event.op != Op::barrier;
         if (fits) op.event.dtype = DType::i32;
         return fits;
       }))},
      {"min in the last reduction", everywhere([](MadeStep& step) {
         for (std::size_t i = step.size(); i-- > 0;) {
           if (!reduces(step[i].event.op) || step[i].event.reduce == ReduceOp::min) continue;
           step[i].event.reduce = ReduceOp::min;
           return true;
         }
         return false;
       })},
      {"blocking on one rank", one_rank([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step) any = std::exchange(op.event.async, false) || any;
         return any;
       })},
      {"async and blocking exchanged between two",
       everywhere(with_pair([](const auto& a, const auto& b) { return a.event.async != b.event.async; },
                            [](auto& a, auto& b) { std::swap(a.event.async, b.event.async); }))},
      {"two roots exchanged", everywhere(with_pair(
                                  [](const auto& a, const auto& b) {
                                    return rooted(a.event.op) && rooted(b.event.op) &&
                                           a.event.peer != b.event.peer;
                                  },
                                  [](auto& a, auto& b) { std::swap(a.event.peer, b.event.peer); }))},
      {"another root everywhere", everywhere([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step) {
           if (!rooted(op.event.op)) continue;
           op.event.peer = op.event.peer == op.ranks.back() ? op.ranks.front() : op.ranks.back();
           any = true;
         }
         return any;
       })},
      {"messages to the next rank of the other group", everywhere([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step)
           if (!is_collective(op.event.op)) op.event.peer ^= 1, any = true;
         return any;
       })},
      {"send and recv exchanged", one_rank([](MadeStep& step) {
         bool any = false;
         for (MadeOperation& op : step) {
           if (is_collective(op.event.op)) continue;
           op.event.op = op.event.op == Op::send ? Op::recv : Op::send;
           any = true;
         }
         return any;
       })},
      {"phases of two exchanged", everywhere(with_pair(
                                      [](const auto& a, const auto& b) {
                                        return a.event.op == b.event.op &&
                                               a.scope.substr(0, 4) != b.scope.substr(0, 4);
                                      },
                                      [](auto& a, auto& b) { std::swap(a.scope, b.scope); }))},
      {"never completed", one_rank([](MadeStep& step) {
         if (!step.empty()) step.back().event.state = trace::State::started;
         return !step.empty();
       })},
  };
}

std::vector<Kind> groups_and_order() {
  const auto other_group = [](const auto& a, const auto& b) {
    return a.ranks != b.ranks && is_collective(a.event.op) && is_collective(b.event.op);
  };
  const auto swap = [](auto& a, auto& b) { std::swap(a, b); };
  const auto another_group = [](const auto& a, const auto& b) {
    return a.ranks != b.ranks && a.ranks.size() == b.ranks.size() && is_collective(a.event.op);
  };
  const auto move = [](auto& a, auto& b) { a.ranks = b.ranks, a.group = b.group; };
  return {
      {"neighbours of two groups reordered, everywhere", everywhere(with_pair(other_group, swap, true))},
      {"neighbours of two groups reordered, one rank", one_rank(with_pair(other_group, swap, true))},
      {"one operation on another group of equal size", everywhere(with_pair(another_group, move))},
      {"one operation on another group of equal size, one rank", one_rank(with_pair(another_group, move))},
      {"two groups exchanged", everywhere([another_group](MadeStep& step) {
         const auto [i, j] = pair_of(step, another_group);
         if (i == std::string::npos) return false;
         const MadeOperation a = step[i], b = step[j];
         for (MadeOperation& op : step) {
           const bool first = op.ranks == a.ranks, second = op.ranks == b.ranks;
           if (first) op.ranks = b.ranks, op.group = b.group;
           if (second) op.ranks = a.ranks, op.group = a.group;
         }
         return true;
       })},
      {"a group of all ranks instead",
       [](MadeRun& run) {
         bool any = false;
         for (MadeRank& rank : run.ranks) {
           for (MadeStep& step : rank.steps) {
             for (MadeOperation& op : step) {
               if (static_cast<int>(op.ranks.size()) == run.world || !is_collective(op.event.op)) continue;
               op.ranks.clear();
               for (int r = 0; r < run.world; ++r) op.ranks.push_back(r);
               any = true;
             }
           }
         }
         return any;
       }},
      {"the last operation comes in the next step",
       [](MadeRun& run) {
         for (MadeRank& rank : run.ranks) {
           auto& steps = rank.steps;
           steps[1].insert(steps[1].begin(), steps[0].back());
           steps[0].pop_back();
         }
         return true;
       }},
      {"the first operation comes last", everywhere([](MadeStep& step) {
         if (step.size() < 2 || step.front().event.bytes == step.back().event.bytes) return false;
         std::rotate(step.begin(), step.begin() + 1, step.end());
         return true;
       })},
      {"all_reduces as reduce_scatter and all_gather", everywhere([](MadeStep& step) {
         MadeStep out;
         for (const MadeOperation& op : step) {
           out.push_back(op);
           if (op.event.op != Op::all_reduce) continue;
           out.back().event.op = Op::reduce_scatter;
           out.push_back(op);
           out.back().event.op = Op::all_gather;
         }
         const bool any = out.size() > step.size();
         step = std::move(out);
         return any;
       })},
      {"all_gathers as broadcasts of each root", everywhere([](MadeStep& step) {
         MadeStep out;
         for (const MadeOperation& op : step) {
           if (op.event.op != Op::all_gather) {
             out.push_back(op);
             continue;
           }
           for (const int root : op.ranks) {
             out.push_back(op);
             out.back().event.op = Op::broadcast;
             out.back().event.peer = root;
             out.back().event.bytes /= static_cast<std::int64_t>(op.ranks.size());
           }
         }
         const bool any = out.size() > step.size();
         step = std::move(out);
         return any;
       })},
      {"one step sends nothing, on all ranks",
       [](MadeRun& run) {
         for (MadeRank& rank : run.ranks) rank.steps[1].clear();
         return true;
       }},
      {"the ranks of two traces exchanged",
       [](MadeRun& run) {
         // Ranks of a data-parallel job send the same, so that nothing changes.
         const auto &first = run.ranks.front().steps[0], &last = run.ranks.back().steps[0];
         const bool differ = !std::equal(first.begin(), first.end(), last.begin(), last.end(),
                                         [](const MadeOperation& a, const MadeOperation& b) {
                                           return alike(a, b) && a.event.bytes == b.event.bytes;
                                         });
         std::swap(run.ranks.front().steps, run.ranks.back().steps);
         return differ;
       }},
  };
}

TEST(SubtleDamage, none_is_accepted_and_none_is_explained) {
  int runs = 0;
  for (const Job& job : jobs) {
    const Plan plan = plan_of(job.layout, job.framework, job.model);
    const MadeRun good = made_run(plan, 3);
    ASSERT_EQ(held_against(plan, good).differences(), 0u) << job.layout << text_of(held_against(plan, good));
    for (const auto& kinds : {sizes_that_add_up(), other_fields(), groups_and_order()}) {
      for (const Kind& kind : kinds) {
        MadeRun run = good;
        if (!kind.damage(run)) continue;
        const std::string what = fmt::format("{} {}: {}", plan::name(job.framework), job.layout, kind.name);
        ++runs;
        const Report report = held_against(plan, run);
        EXPECT_GT(report.differences(), 0u) << what;
        EXPECT_GT(report.unexplained(), 0u)
            << what << "\n"
            << (report.explanations.empty() ? "" : report.explanations.front().sentence) << "\n"
            << text_of(report);
      }
    }
  }
  fmt::print("{} damaged runs\n", runs);
  EXPECT_GE(runs, 150);
}

struct Setting {
  const char *planned, *ran, *third;  ///< `third`: yet another value of the setting that differs
  Framework framework;
};
const Setting settings[] = {
    {"dp=4,bucket_cap_mb=1", "dp=4,bucket_cap_mb=0.25", "dp=4,bucket_cap_mb=0.125", Framework::ddp},
    {"dp=4,zero=1", "dp=4,zero=3", "dp=4,zero=2", Framework::deepspeed},
    {"dp=4,zero=1", "dp=4,zero=1,reduce_bucket_size=200000", "dp=4,zero=1,reduce_bucket_size=100000",
     Framework::deepspeed},
    {"dp=2,tp=2,global_batch=4", "dp=2,tp=2,global_batch=8,micro_batch=2",
     "dp=2,tp=2,global_batch=16,micro_batch=4", Framework::megatron},
    {"dp=2,tp=2,seq=64", "dp=2,tp=2,seq=32", "dp=2,tp=2,seq=128", Framework::megatron},
    {"tp=2,sp=on", "tp=2,sp=on,recompute=full", "tp=2,sp=off", Framework::megatron},
};

/// A true hypothesis, but for one operation, rank or step.
TEST(SubtleDamage, a_hypothesis_that_fails_in_one_place_explains_nothing_there) {
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
           for (std::size_t r = 0; r < run.ranks.size(); ++r)
             run.ranks[r].steps[1] = as_planned.ranks[r].steps[1];
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
void route(MadeRun& run, std::int64_t tokens,
           const std::function<bool(const MadeOperation&, std::size_t)>& which) {
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

TEST(SubtleDamage, uneven_routing_excuses_nothing_else) {
  const Plan plan = plan_of("dp=4,ep=2", Framework::deepspeed, moe);
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
  EXPECT_GT(held([&](MadeRun& run) { route(run, 3, forward); }).unexplained(), 0u)
      << "only in the forward pass";
  EXPECT_GT(held([&](MadeRun& run) {
              route(run, 3, [&](auto& op, auto n) { return !forward(op, n); });
            }).unexplained(),
            0u)
      << "only in the backward pass";
  EXPECT_GT(held([&](MadeRun& run) {
              route(run, 3, all);
              for (MadeRank& rank : run.ranks)
                for (MadeStep& step : rank.steps) {
                  const auto [i, j] = pair_of(
                      step,
                      [](const auto& a, const auto& b) {
                        return a.event.op == Op::all_to_allv && b.event.op != Op::all_to_allv;
                      },
                      true);
                  ASSERT_NE(i, std::string::npos);
                  std::swap(step[i], step[j]);
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

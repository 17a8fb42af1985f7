// Damage that a sum would not show: totals are conserved, operations change places or groups, or one rank or one
// step deviates. Reconcile accepts none of it and explains none of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "reconcile/jobs.hpp"

namespace medley::reconcile::test {
namespace {

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
std::pair<std::size_t, std::size_t> pair_of(const MadeStep& step,
                                            const std::function<bool(const MadeOperation&, const MadeOperation&)>& fits,
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
      {"one twice, an equal one not at all", everywhere(with_pair(other_size, [](auto& a, auto& b) { b = a; }))},
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
                                    return rooted(a.event.op) && rooted(b.event.op) && a.event.peer != b.event.peer;
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
                                        return a.event.op == b.event.op && a.scope.substr(0, 4) != b.scope.substr(0, 4);
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

}  // namespace
}  // namespace medley::reconcile::test

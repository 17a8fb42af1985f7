// Every kind of damage to a run, in every framework, on one operation or on all: reconcile accepts none of them, and
// never explains one by a setting that was not changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "reconcile/jobs.hpp"

namespace medley::reconcile::test {
namespace {

/// How much is damaged.
enum class Severity { one_operation, one_step_of_one_rank, every_step_and_rank };
constexpr Severity severities[] = {Severity::one_operation, Severity::one_step_of_one_rank,
                                   Severity::every_step_and_rank};

/// Damages a step; with `once` only the first matching operation. False: nothing in it matches.
using Damage = std::function<bool(MadeStep&, bool once, int world)>;

/// Damages each matching operation.
Damage each(std::function<bool(MadeOperation&)> damage) {
  return [damage](MadeStep& step, bool once, int) {
    bool any = false;
    for (MadeOperation& op : step) {
      if (once && any) break;
      any = damage(op) || any;
    }
    return any;
  };
}

/// Damages all operations of the largest size.
Damage largest(std::function<void(MadeOperation&)> damage) {
  return [damage](MadeStep& step, bool once, int) {
    std::int64_t most = 0;
    for (const MadeOperation& op : step) most = std::max(most, op.event.bytes);
    bool any = false;
    for (MadeOperation& op : step) {
      if (op.event.bytes != most || (once && any)) continue;
      damage(op);
      any = true;
    }
    return any;
  };
}

bool drop(MadeStep& step, bool once, const std::function<bool(const MadeOperation&)>& which) {
  bool any = false;
  std::erase_if(step, [&](const MadeOperation& op) {
    if ((once && any) || !which(op)) return false;
    return any = true;
  });
  return any;
}

struct Kind {
  const char* name;
  Damage damage;
};

std::vector<Kind> kinds_of_damage() {
  std::vector<Kind> out;
  out.push_back({"max for sum", each([](MadeOperation& op) {
                   const bool fits = reduces(op.event.op) && op.event.reduce == ReduceOp::sum;
                   if (fits) op.event.reduce = ReduceOp::max;
                   return fits;
                 })});
  out.push_back({"another dtype of equal size", each([](MadeOperation& op) {
                   const DType was = op.event.dtype;
                   if (op.event.op == Op::barrier) return false;
                   op.event.dtype = was == DType::f32    ? DType::i32
                                    : was == DType::bf16 ? DType::f16
                                    : was == DType::i64  ? DType::f64
                                    : was == DType::u8   ? DType::i8
                                                         : was;
                   return op.event.dtype != was;
                 })});
  out.push_back({"the largest doubled", largest([](MadeOperation& op) { op.event.bytes *= 2; })});
  out.push_back({"the largest halved", largest([](MadeOperation& op) { op.event.bytes /= 2; })});
  out.push_back({"the largest doubled, as a wider dtype", largest([](MadeOperation& op) {
                   op.event.bytes *= 2;
                   op.event.dtype = op.event.dtype == DType::bf16 ? DType::f32 : DType::f64;
                 })});
  out.push_back({"the largest in two halves", [](MadeStep& step, bool once, int) {
                   std::int64_t most = 0;
                   for (const MadeOperation& op : step) most = std::max(most, op.event.bytes);
                   for (std::size_t i = 0; i < step.size(); ++i) {
                     if (step[i].event.bytes != most) continue;
                     step[i].event.bytes /= 2;
                     step.insert(step.begin() + static_cast<std::ptrdiff_t>(i), step[i]);
                     ++i;
                     if (once) break;
                   }
                   return most > 0;
                 }});
  out.push_back({"a few bytes more", each([](MadeOperation& op) {
                   if (op.event.op == Op::barrier) return false;
                   op.event.bytes += 64;
                   return true;
                 })});
  out.push_back({"4 KiB for what is small", each([](MadeOperation& op) {
                   const bool fits = op.event.bytes > 0 && op.event.bytes <= 64;
                   if (fits) op.event.bytes = 4096;
                   return fits;
                 })});
  out.push_back({"all_to_all times four", each([](MadeOperation& op) {
                   const bool fits = op.event.op == Op::all_to_all;
                   if (fits) op.event.bytes *= 4;
                   return fits;
                 })});
  out.push_back({"all_to_allv of any size", each([n = std::int64_t{0}](MadeOperation& op) mutable {
                   const bool fits = op.event.op == Op::all_to_all;
                   if (!fits) return false;
                   op.event.op = Op::all_to_allv;
                   op.event.bytes += 256 * (1 + n++ % 7);
                   return true;
                 })});
  out.push_back({"reversed", [](MadeStep& step, bool once, int) {
                   if (!once) {
                     std::reverse(step.begin(), step.end());
                     return step.size() > 1;
                   }
                   for (std::size_t i = 1; i < step.size(); ++i) {
                     if (step[i].event.bytes == step[i - 1].event.bytes || step[i].event.op != step[i - 1].event.op)
                       continue;
                     std::swap(step[i], step[i - 1]);
                     return true;
                   }
                   return false;
                 }});
  out.push_back({"blocking for async", each([](MadeOperation& op) { return std::exchange(op.event.async, false); })});
  out.push_back({"async for blocking", each([](MadeOperation& op) { return !std::exchange(op.event.async, true); })});
  out.push_back({"64 MiB extra", [](MadeStep& step, bool, int world) {
                   MadeOperation op;
                   op.event.bytes = 64 << 20;
                   op.event.dtype = DType::f32;
                   op.group = "world";
                   for (int r = 0; r < world; ++r) op.ranks.push_back(r);
                   op.scope = "backward/gradients";
                   step.push_back(op);
                   return true;
                 }});
  out.push_back({"a scalar extra", [](MadeStep& step, bool, int world) {
                   MadeOperation op;
                   op.event.bytes = 4;
                   op.event.dtype = DType::f32;
                   op.group = "world";
                   for (int r = 0; r < world; ++r) op.ranks.push_back(r);
                   op.scope = "optimizer/loss";
                   step.push_back(op);
                   return true;
                 }});
  out.push_back({"a barrier extra", [](MadeStep& step, bool, int world) {
                   MadeOperation op;
                   op.event.op = Op::barrier;
                   op.group = "world";
                   for (int r = 0; r < world; ++r) op.ranks.push_back(r);
                   op.scope = "optimizer/barrier";
                   step.push_back(op);
                   return true;
                 }});
  out.push_back({"bytes on a group nobody planned", [](MadeStep& step, bool, int world) {
                   MadeOperation op = step.front();
                   op.event.op = Op::all_reduce;
                   op.event.bytes = 1 << 20;
                   op.ranks = {0, world - 1};
                   op.group = "unplanned";
                   if (world == 2) op.ranks = {0, 1};
                   step.push_back(op);
                   return true;
                 }});
  out.push_back({"twice", [](MadeStep& step, bool once, int) {
                   const std::size_t n = once ? 1 : step.size();
                   for (std::size_t i = 0; i < n; ++i)
                     step.insert(step.begin() + static_cast<std::ptrdiff_t>(2 * i), step[2 * i]);
                   return n > 0;
                 }});
  out.push_back({"no reduce_scatter", [](MadeStep& step, bool once, int) {
                   return drop(step, once, [](const auto& op) { return op.event.op == Op::reduce_scatter; });
                 }});
  out.push_back({"no all_reduce", [](MadeStep& step, bool once, int) {
                   return drop(step, once, [](const auto& op) { return op.event.op == Op::all_reduce; });
                 }});
  out.push_back(
      {"nothing", [](MadeStep& step, bool once, int) { return drop(step, once, [](const auto&) { return true; }); }});
  out.push_back({"reduce_scatter for all_reduce", each([](MadeOperation& op) {
                   const bool fits = op.event.op == Op::all_reduce;
                   if (fits) op.event.op = Op::reduce_scatter;
                   return fits;
                 })});
  out.push_back({"another root or peer", each([](MadeOperation& op) {
                   if (op.event.peer < 0) return false;
                   op.event.peer = op.event.peer == op.ranks.back() ? op.ranks.front() : op.ranks.back();
                   return op.ranks.size() > 1;
                 })});
  out.push_back({"another phase", each([](MadeOperation& op) {
                   op.scope = op.scope.starts_with("forward") ? "backward/x" : "forward/x";
                   return true;
                 })});
  out.push_back({"failed", each([](MadeOperation& op) {
                   op.event.state = trace::State::failed;
                   return true;
                 })});
  return out;
}

bool damaged(MadeRun& run, const Damage& damage, Severity severity) {
  if (severity != Severity::every_step_and_rank)
    return damage(run.ranks.back().steps[run.ranks.back().steps.size() / 2], severity == Severity::one_operation,
                  run.world);
  bool any = false;
  for (MadeRank& rank : run.ranks)
    for (MadeStep& step : rank.steps) any = damage(step, false, run.world) || any;
  return any;
}

TEST(CorruptedRuns, none_is_accepted_and_none_is_explained) {
  int runs = 0;
  for (const Job& job : jobs) {
    const Plan plan = plan_of(job.layout, job.framework, job.model);
    const MadeRun good = made_run(plan, 3);
    ASSERT_EQ(held_against(plan, good).differences(), 0u) << job.layout << text_of(held_against(plan, good));
    for (const Kind& kind : kinds_of_damage()) {
      for (const Severity severity : severities) {
        MadeRun run = good;
        if (!damaged(run, kind.damage, severity)) continue;
        ++runs;
        const Report report = held_against(plan, run);
        const std::string what = fmt::format("{} {}: {}, severity {}", plan::name(job.framework), job.layout, kind.name,
                                             static_cast<int>(severity));
        EXPECT_GT(report.differences(), 0u) << what;
        if (report.unexplained() > 0) continue;
        // Every operation was changed from bf16 to f16: the same as a run in f16.
        EXPECT_STREQ(kind.name, "another dtype of equal size") << what << "\n" << text_of(report);
        EXPECT_EQ(severity, Severity::every_step_and_rank) << what;
        EXPECT_EQ(report.explanations.front().sentence.find("activations and parameters are in f16, not bf16"), 0u)
            << what << "\n"
            << report.explanations.front().sentence;
      }
    }
  }
  RecordProperty("runs", runs);
  fmt::print("{} corrupted runs\n", runs);
  EXPECT_GE(runs, 150);
}

TEST(CorruptedRuns, missing_ranks_and_steps_are_found) {
  for (const Job& job : jobs) {
    const Plan plan = plan_of(job.layout, job.framework, job.model);
    for (const int rank : {0, 3}) {
      MadeRun run = made_run(plan, 4);
      run.ranks.erase(run.ranks.begin() + rank);
      EXPECT_GT(held_against(plan, run).unexplained(), 0u) << job.layout << ", rank " << rank << " missing";
      MadeRun shorter = made_run(plan, 4);
      shorter.ranks[static_cast<std::size_t>(rank)].steps.pop_back();
      EXPECT_GT(held_against(plan, shorter).unexplained(), 0u)
          << job.layout << ", a step of rank " << rank << " missing";
    }
  }
}

}  // namespace
}  // namespace medley::reconcile::test

// Runs record what they do, and the reader sees exactly that: after an orderly end, after a SIGKILL in the
// middle, on several ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <medley/medley.hpp>
#include <medley/scope.hpp>

#include "harness/ranks.hpp"
#include "harness/traced.hpp"
#include "trace/problems.hpp"
#include "trace/skew.hpp"
#include "trace/summary.hpp"

namespace medley::trace {
namespace {

class Recorded : public test::Traced {};

std::vector<Event> events_of(const Trace& trace, int rank) {
  std::vector<Event> out;
  trace.rank(rank).for_each([&](const Event& event) { out.push_back(event); });
  return out;
}

TEST_F(Recorded, every_operation_is_there_with_its_full_size_and_scope) {
  test::run_processes(2, [](Context& context) {
    Comm world = context.world();
    Comm twin = world.dup();
    std::vector<float> large(1000, 1), part(500);
    std::vector<std::int64_t> whole(8), mine(4);
    {
      const Scope scope("forward/layer0");
      world.all_reduce(large, sum);
      twin.reduce_scatter(large, part, sum);
    }
    auto pending = world.all_gather(mine, whole, {.async = true});
    pending.wait();
    if (context.rank() == 0) world.send(part, 1);
    else world.recv(part, 0);
    world.broadcast(mine, 1);
  });
  const Trace trace = open_trace(folder_.native());
  ASSERT_EQ(trace.ranks.size(), 2u);
  EXPECT_EQ(trace.world, 2);
  for (int rank : {0, 1}) {
    const auto events = events_of(trace, rank);
    ASSERT_EQ(events.size(), 5u) << rank;
    const Op ops[] = {Op::all_reduce, Op::reduce_scatter, Op::all_gather, rank == 0 ? Op::send : Op::recv,
                      Op::broadcast};
    const std::int64_t bytes[] = {4000, 4000, 64, 2000, 32};
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(events[i].op, ops[i]);
      EXPECT_EQ(events[i].bytes, bytes[i]) << name(ops[i]);
      EXPECT_EQ(events[i].state, State::complete);
      EXPECT_LE(events[i].issued, events[i].completed);
      EXPECT_LE(events[i].exposed, events[i].completed - events[i].issued + 1);
      EXPECT_LE(events[i].issued, events[i].started);
      EXPECT_DOUBLE_EQ(events[i].duration(), events[i].completed - events[i].started);
      EXPECT_EQ(trace.names[events[i].scope], i < 2 ? "forward/layer0" : "");
      EXPECT_EQ(trace.names[events[i].backend], "shm");
    }
    EXPECT_TRUE(events[2].async);
    EXPECT_NE(events[0].group, events[1].group);
    EXPECT_EQ(trace.groups[events[1].group].ranks, (std::vector<int>{0, 1}));
    EXPECT_EQ(events[3].peer, 1 - rank);
  }
  EXPECT_TRUE(find_problems(trace).list.empty());
}

TEST_F(Recorded, a_collective_ends_after_its_last_rank_began_on_one_clock) {
  test::run_processes(2, [](Context& context) {
    for (int i = 0; i < 200; ++i) context.world().barrier();
  });
  const Trace trace = open_trace(folder_.native());
  const auto a = events_of(trace, 0), b = events_of(trace, 1);
  ASSERT_EQ(a.size(), 200u);
  ASSERT_EQ(b.size(), 200u);
  // Readings of two cores' counters differ by some ns, and a small operation's issue is read just after its data left: a page
  // fault or the scheduler may come in between.
  int before = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    before += a[i].completed + 100 < b[i].issued ? 1 : 0;
    before += b[i].completed + 100 < a[i].issued ? 1 : 0;
  }
  EXPECT_LE(before, 10);
  const auto skew = find_skew(trace);
  ASSERT_EQ(skew.size(), 1u);
  EXPECT_EQ(skew[0].collectives, 200);
  EXPECT_GE(skew[0].max_us, skew[0].median_us);
}

TEST_F(Recorded, after_sigkill_everything_up_to_the_last_operation_is_readable) {
  test::Shared<std::atomic<int>> done;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Context context(test::options_of(0, 1, make_local_store()));
    std::vector<float> values(16, 1);
    for (int i = 0; i < 1'000'000'000; ++i) {
      context.world().all_reduce(values, sum);
      done[0].store(i + 1);
    }
    _exit(0);
  }
  while (done[0].load() < 10'000) usleep(1000);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const Trace trace = open_trace(folder_.native());
  const auto events = events_of(trace, 0);
  const auto complete =
      std::count_if(events.begin(), events.end(), [](const Event& e) { return e.state == State::complete; });
  EXPECT_GE(complete, done[0].load());
  EXPECT_LE(complete, done[0].load() + 1);
  for (std::size_t i = 0; i < events.size(); ++i) ASSERT_EQ(events[i].sequence, i + 1);
}

TEST_F(Recorded, a_rank_that_does_not_come_is_named) {
  test::run_processes(2, [](Context& context) {
    context.world().barrier();
    if (context.rank() == 1) return;
    std::vector<float> values(64);
    EXPECT_THROW(context.world().all_reduce(values, sum, {.deadline = std::chrono::milliseconds(100)}), Error);
  });
  const Trace trace = open_trace(folder_.native());
  const Problems problems = find_problems(trace);
  ASSERT_EQ(problems.list.size(), 1u);
  const Problem& problem = problems.list[0];
  EXPECT_EQ(problem.kind, "failed");
  EXPECT_EQ(problem.event.sequence, 2u);
  EXPECT_EQ(problem.ranks.at(0), "failed");
  EXPECT_EQ(problem.ranks.at(1), "not issued");
  EXPECT_NE(problem.sentence.find("all_reduce #2 of 256 B on world (ranks 0, 1)"), std::string::npos)
      << problem.sentence;
  EXPECT_NE(problem.sentence.find("rank 1 did not get there: its last is barrier #1"), std::string::npos)
      << problem.sentence;
}

/// Rank 1 joins each all_reduce once rank 0 says so, after it has issued its own part.
TEST_F(Recorded, a_wait_by_other_means_than_a_work_is_unknown_until_the_program_tells_since_when) {
  test::run_processes(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> values(64), go(1);
    const auto issue = [&] {
      Work work = world.all_reduce(values, sum, {.async = true});
      work.awaited_elsewhere();
      world.send(go, 1);
      return work;
    };
    for (int i = 0; context.rank() == 1 && i < 4; ++i) {
      world.recv(go, 0);
      world.all_reduce(values, sum);
    }
    if (context.rank() == 1) return;
    const auto by_test = [](Work work) {
      while (!work.test()) {
      }
      return work;
    };
    by_test(issue());
    const auto begin = std::chrono::steady_clock::now();
    by_test(issue()).awaited_since(begin);
    by_test(issue()).awaited_since(std::chrono::steady_clock::now());
    issue().wait();
  });
  auto events = events_of(open_trace(folder_.native()), 0);
  std::erase_if(events, [](const Event& event) { return event.op == Op::send; });
  ASSERT_EQ(events.size(), 4u);
  EXPECT_FALSE(events[0].exposed_known);
  EXPECT_TRUE(events[1].exposed_known);
  EXPECT_GT(events[1].exposed, 0);
  EXPECT_TRUE(events[2].exposed_known);
  EXPECT_EQ(events[2].exposed, 0) << "it was complete by then";
  EXPECT_TRUE(events[3].exposed_known) << "a wait by the Work is recorded";
}

TEST_F(Recorded, a_wait_for_fused_tensors_by_other_means_is_known_once_the_program_tells) {
  test::run_processes(2, [](Context& context) {
    Comm world = context.world();
    std::vector<float> a(4), b(4), go(1);
    for (const bool tells : {false, true}) {
      if (context.rank() == 1) world.recv(go, 0);
      Work work;
      {
        const Fuse fuse(world);
        work = world.all_reduce(a, sum, {.async = true});
        world.all_reduce(b, sum, {.async = true});
      }
      work.awaited_elsewhere();
      const auto begin = std::chrono::steady_clock::now();
      if (context.rank() == 0) world.send(go, 1);
      while (!work.test()) {
      }
      if (tells) work.awaited_since(begin);
    }
  });
  auto events = events_of(open_trace(folder_.native()), 0);
  std::erase_if(events, [](const Event& event) { return event.op != Op::all_reduce; });
  ASSERT_EQ(events.size(), 2u) << "two messages of two tensors each";
  EXPECT_FALSE(events[0].exposed_known);
  EXPECT_TRUE(events[1].exposed_known);
  EXPECT_GT(events[1].exposed, 0);
}

TEST_F(Recorded, rows_of_a_step_count_one_step_and_time_all) {
  test::run_processes(2, [](Context& context) {
    std::vector<float> small(10), large(1000);
    for (int step = 0; step < 7; ++step) {
      {
        const Scope border("step");
        context.world().barrier();
      }
      for (int layer = 0; layer < 3; ++layer) {
        const Scope scope("backward/layer");
        context.world().all_reduce(large, sum);
      }
      context.world().all_reduce(small, max);
    }
  });
  const Trace trace = open_trace(folder_.native());
  const RankTrace& rank = trace.rank(1);
  const Summary summary = summarise(trace, rank, find_steps(trace, rank));
  EXPECT_EQ(summary.steps.found_by, "scope");
  EXPECT_EQ(summary.steps.steps.size(), 7u);
  EXPECT_EQ(summary.unlike, 0u);
  ASSERT_EQ(summary.rows.size(), 2u);
  EXPECT_EQ(summary.rows[0].bytes, 4000);
  EXPECT_EQ(summary.rows[0].count, 3);
  EXPECT_EQ(summary.rows[0].timed, 21);
  EXPECT_EQ(summary.rows[0].phase, "backward");
  EXPECT_EQ(summary.rows[0].module, "layer");
  EXPECT_EQ(summary.rows[1].count, 1);
}

}  // namespace
}  // namespace medley::trace

// Verdicts on synthetic recordings of running jobs: which ranks are stuck, gone or late, and what became
// slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "trace/watch.hpp"

namespace medley::trace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr double second = 1e9;

/// A job whose ranks issue an all_reduce every 10 ms; times are ns since it started.
struct Job {
  explicit Job(int ranks) {
    trace.world = ranks;
    Group world{"world", {}, ranks};
    for (int r = 0; r < ranks; ++r) world.ranks.push_back(r);
    trace.group(world);
    for (int r = 0; r < ranks; ++r) {
      RankTrace rank;
      rank.rank = r;
      lists.push_back(std::make_shared<EventList>());
      rank.events = lists.back();
      trace.ranks.push_back(rank);
    }
  }
  void call(int rank, std::uint64_t sequence, double issued, double completed, Op op = Op::all_reduce) {
    Event e;
    e.op = op;
    e.bytes = 4096;
    e.sequence = sequence;
    e.issued = e.started = issued;
    e.completed = completed;
    e.state = completed >= 0 ? State::complete : State::started;
    lists[static_cast<std::size_t>(rank)]->events.push_back(e);
  }
  WatchReport report(double now, const std::vector<RankNow>& processes = {}) {
    return watch_report(trace, processes, now, WatchOptions{});
  }
  Trace trace;
  std::vector<std::shared_ptr<EventList>> lists;
};

const WatchVerdict* find(const WatchReport& report, const std::string& kind) {
  for (const WatchVerdict& v : report.verdicts)
    if (v.kind == kind) return &v;
  return nullptr;
}

TEST(Watch, a_healthy_job_has_no_verdict) {
  Job job(3);
  for (int i = 1; i <= 100; ++i)
    for (int r = 0; r < 3; ++r)
      job.call(r, static_cast<std::uint64_t>(i), i * 1e7 + ((r + i) % 3) * 1e3, i * 1e7 + 5e4);
  EXPECT_TRUE(job.report(1.01 * second).verdicts.empty());
}

/// Each rank measures its clock's rate for itself: 250 ppm apart are 2.5 ms after ten seconds, which are no lateness.
TEST(Watch, clocks_that_drift_apart_make_nobody_late) {
  Job job(2);
  const double drift = 250e-6, offset = 3e6;
  job.trace.ranks[1].clock = {.offset = offset, .drift = drift};
  for (int i = 1; i <= 1000; ++i) {
    for (int r = 0; r < 2; ++r) {
      const double issued = i * 1e7 + ((r + i) % 2) * 1e3, completed = i * 1e7 + 5e4;
      const auto own = [&](double time) { return r == 0 ? time : (time - offset) / (1 + drift); };
      job.call(r, static_cast<std::uint64_t>(i), own(issued), own(completed));
    }
  }
  EXPECT_TRUE(job.report(10.01 * second).verdicts.empty());
}

TEST(Watch, lateness_below_the_error_of_the_clocks_is_none) {
  for (const double error : {0.0, 5e6}) {
    Job job(2);
    job.trace.clock_error = error;
    for (int i = 1; i <= 100; ++i)
      for (int r = 0; r < 2; ++r) job.call(r, static_cast<std::uint64_t>(i), i * 1e7 + r * 4e6, i * 1e7 + 4.1e6);
    EXPECT_EQ(find(job.report(1.01 * second), "late") != nullptr, error == 0);
  }
}

TEST(Watch, a_job_that_ended_in_order_is_not_gone) {
  const std::vector<RankNow> gone{{0, ProcessState::gone}, {1, ProcessState::gone}};
  Job job(2);
  for (int r = 0; r < 2; ++r) job.call(r, 1, 1e7, 2e7);
  EXPECT_FALSE(job.report(5 * second, gone).alarming());
  Job killed(2);
  for (int r = 0; r < 2; ++r) killed.call(r, 1, 1e7, 2e7);
  killed.call(0, 2, 3e7, -1);
  EXPECT_TRUE(killed.report(5 * second, gone).alarming());
  Job alone(2);
  for (int r = 0; r < 2; ++r) alone.call(r, 1, 1e7, 2e7);
  EXPECT_TRUE(alone.report(5 * second, {{0, ProcessState::running}, {1, ProcessState::gone}}).alarming());
}

TEST(Watch, a_hang_names_who_did_not_call_and_what_it_called_instead) {
  Job job(3);
  for (int r = 0; r < 3; ++r) job.call(r, 1, 1e7, 2e7);
  job.call(0, 2, 3e7, -1);
  job.call(2, 2, 3e7, -1);
  EXPECT_FALSE(job.report(0.5 * second).alarming()) << "not for long enough";
  Job same(3);
  for (int r = 0; r < 3; ++r) same.call(r, 1, 1e7, 2e7);
  same.call(0, 2, 3e7, -1);
  same.call(2, 2, 3e7, -1);
  const WatchReport report = same.report(3 * second);
  const WatchVerdict* stuck = find(report, "stuck");
  ASSERT_NE(stuck, nullptr);
  EXPECT_EQ(stuck->ranks, std::vector<int>{1});
  EXPECT_NEAR(stuck->since_s, 2.97, 0.01);
  EXPECT_THAT(stuck->sentence, EndsWith("rank 1 did not get there: its last is all_reduce #1 (complete)"))
      << "and once";
}

TEST(Watch, a_straggler_is_found_by_its_arrivals_though_all_end_together) {
  Job job(4);
  for (int i = 1; i <= 200; ++i) {
    for (int r = 0; r < 4; ++r)
      job.call(r, static_cast<std::uint64_t>(i), i * 1e7 + (r == 2 && i > 100 ? 4e6 : r * 1e3), i * 1e7 + 5e6);
  }
  const WatchReport report = job.report(2.01 * second);
  const WatchVerdict* late = find(report, "late");
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->ranks, std::vector<int>{2});
  EXPECT_NEAR(late->us, 4000, 10);
  EXPECT_NEAR(late->since_s, 1.0, 0.02) << "since it became late";
}

/// Ranks take turns at being last by chance; after `good` seconds one of them becomes late.
Job became_late(double good, double bad, double lateness) {
  Job job(2);
  std::uint64_t sequence = 0;
  double at = 0;
  unsigned random = 1;
  const auto all_reduce = [&](double late) {
    ++sequence;
    random = random * 1664525u + 1013904223u;
    const double noise = (random >> 16) % 5000, first = random >> 31;
    job.call(0, sequence, at + (first > 0 ? noise : 0), at + late + 5e4);
    job.call(1, sequence, at + (first > 0 ? 0 : noise) + late, at + late + 5e4);
    at += late + 1e6;
  };
  while (at < good * second) all_reduce(0);
  while (at < (good + bad) * second) all_reduce(lateness);
  return job;
}

TEST(Watch, a_rank_that_became_late_is_named_at_once_and_since_when) {
  EXPECT_FALSE(became_late(10, 0, 0).report(10 * second).alarming());
  Job job = became_late(10, 1, 5e6);  // 10,000 collectives in time, then 167 late ones
  const WatchReport report = job.report(11 * second);
  const WatchVerdict* late = find(report, "late");
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->ranks, std::vector<int>{1});
  EXPECT_NEAR(late->since_s, 1.0, 0.02);
  EXPECT_NEAR(late->us, 5000, 10);
}

TEST(Watch, a_rank_that_recovered_is_not_late) {
  Job job = became_late(1, 1, 5e6);
  double at = 2 * second;
  for (std::uint64_t i = 0; i < 1000; ++i, at += 1e6) {
    job.call(static_cast<int>(i % 2), 5000 + i, at, at + 5e4);
    job.call(static_cast<int>(1 - i % 2), 5000 + i, at + 1e3, at + 5e4);
  }
  EXPECT_EQ(find(job.report(at), "late"), nullptr);
}

/// A data loader stalls one rank before each step; within the step the ranks meet without delay.
TEST(Watch, a_rank_that_is_late_once_a_step_is_named) {
  Job job(4);
  std::uint64_t sequence = 0;
  for (int step = 1; step <= 30; ++step) {
    for (int i = 0; i < 12; ++i) {
      ++sequence;
      const double at = step * second + (i > 0 ? 0.3 * second : 0) + i * 1e6;
      for (int r = 0; r < 4; ++r) {
        const double late = i == 0 && r == 2 ? 0.3 * second : static_cast<int>(sequence % 4) == r ? 3e4 : 0;
        job.call(r, sequence, at + late, at + (i == 0 ? 0.3 * second : 0) + 1e5);
      }
    }
  }
  const WatchReport report = job.report(31 * second);
  const WatchVerdict* late = find(report, "late");
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->ranks, std::vector<int>{2});
  EXPECT_NEAR(late->us, 3e5, 1e3);
}

/// Lateness that costs a ten-thousandth of the time is none, however regular.
TEST(Watch, lateness_that_costs_nothing_is_no_alarm) {
  Job job(2);
  for (int i = 1; i <= 50; ++i)
    for (int r = 0; r < 2; ++r) job.call(r, static_cast<std::uint64_t>(i), i * second + r * 1e6, i * second + 2e6);
  EXPECT_EQ(find(job.report(50.5 * second), "late"), nullptr);
  Job hiccup = became_late(10, 0.05, 1e6);  // 25 collectives, 25 ms
  EXPECT_EQ(find(hiccup.report(10.05 * second), "late"), nullptr);
}

/// Ranks 0 and 1, and 2 and 3, are tensor-parallel; 0 and 2, and 1 and 3, data-parallel. Rank 3 is slow, so that rank 2
/// waits for it and arrives late where rank 0 waits.
TEST(Watch, who_waited_for_a_straggler_is_not_one) {
  Job job(4);
  std::vector<std::uint32_t> groups;
  for (const std::vector<int>& ranks : {std::vector{0, 1}, {2, 3}, {0, 2}, {1, 3}})
    groups.push_back(job.trace.group({"g" + std::to_string(groups.size()), ranks, 2}));
  const auto call = [&](int rank, std::uint32_t group, std::uint64_t sequence, double issued, double completed) {
    job.call(rank, sequence, issued, completed);
    Event& e = job.lists[static_cast<std::size_t>(rank)]->events.back();
    e.group = group;
    e.exposed = completed - issued;
  };
  for (int i = 1; i <= 100; ++i) {
    const auto n = static_cast<std::uint64_t>(i);
    const double at = i * 2e7, late = at + 1e7;
    call(0, groups[0], n, at, at + 1e5), call(1, groups[0], n, at, at + 1e5);
    call(2, groups[1], n, at, late + 1e5), call(3, groups[1], n, late, late + 1e5);
    call(0, groups[2], n, at + 2e5, late + 3e5), call(2, groups[2], n, late + 2e5, late + 3e5);
    call(1, groups[3], n, at + 2e5, late + 3e5), call(3, groups[3], n, late + 2e5, late + 3e5);
  }
  std::size_t verdicts = 0;
  for (const WatchVerdict& v : job.report(101 * 2e7).verdicts) {
    if (v.kind != "late") continue;
    ++verdicts;
    EXPECT_EQ(v.ranks, std::vector<int>{3}) << v.sentence;
  }
  EXPECT_EQ(verdicts, 2u) << "on both of its groups";
}

TEST(Watch, a_mismatch_blames_the_rank_that_differs_from_most) {
  const auto verdict = [](const std::function<void(Event&)>& change) {
    Job job(3);
    for (int r = 0; r < 3; ++r) job.call(r, 1, 1e7, -1, Op::reduce);
    for (int r = 0; r < 3; ++r) job.lists[static_cast<std::size_t>(r)]->events[0].peer = 2;
    change(job.lists[0]->events[0]);
    const WatchReport report = job.report(3 * second);
    const WatchVerdict* found = find(report, "mismatch");
    return found ? *found : WatchVerdict{};
  };
  const std::pair<std::function<void(Event&)>, const char*> changes[] = {
      {[](Event& e) { e.op = Op::broadcast; }, "rank 0 called broadcast of 4096 B u8 with root 2 instead"},
      {[](Event& e) { e.bytes = 64; }, "rank 0 called reduce of 64 B u8 sum with root 2 instead"},
      {[](Event& e) { e.dtype = DType::i8; }, "rank 0 called reduce of 4096 B i8 sum with root 2 instead"},
      {[](Event& e) { e.reduce = ReduceOp::max; }, "rank 0 called reduce of 4096 B u8 max with root 2 instead"},
      {[](Event& e) { e.peer = 1; }, "rank 0 called reduce of 4096 B u8 sum with root 1 instead"},
  };
  for (const auto& [change, sentence] : changes) {
    const WatchVerdict v = verdict(change);
    EXPECT_EQ(v.ranks, std::vector<int>{0}) << sentence;
    EXPECT_THAT(v.sentence, HasSubstr(sentence));
  }
  EXPECT_EQ(verdict([](Event& e) {
              e.reduce = ReduceOp::max;
              e.unknown.add(Field::reduce);
            }).kind,
            "")
      << "what a source does not say cannot differ";
}

TEST(Watch, the_only_rank_that_is_not_through_is_named) {
  Job job(3);
  for (int r = 0; r < 3; ++r) job.call(r, 1, 1e7, r == 1 ? -1 : 2e7);
  const WatchReport report = job.report(3 * second);
  const WatchVerdict* stuck = find(report, "stuck");
  ASSERT_NE(stuck, nullptr);
  EXPECT_EQ(stuck->ranks, std::vector<int>{1});
  EXPECT_THAT(stuck->sentence, HasSubstr("ranks 0, 2 complete; rank 1 started it, not complete"));
}

TEST(Watch, a_message_that_nobody_answers_blames_the_peer) {
  Job job(3);
  job.call(0, 1, 1e7, -1, Op::recv);
  job.lists[0]->events[0].matched = false;
  job.lists[0]->events[0].peer = 2;
  job.call(2, 1, 1e7, 2e7);
  const WatchReport report = job.report(3 * second);
  const WatchVerdict* stuck = find(report, "stuck");
  ASSERT_NE(stuck, nullptr);
  EXPECT_EQ(stuck->ranks, std::vector<int>{2});
  EXPECT_THAT(stuck->sentence, EndsWith("; the last call of rank 2 is all_reduce #1 on world (complete)"));
}

/// Ranks 0 to n-1 wait in the first collective of a comm each, which the next rank has not called.
Job crossed(int ranks, bool async = false) {
  Job job(ranks);
  for (int r = 0; r < ranks; ++r) {
    const std::uint32_t group = job.trace.group({"made/" + std::to_string(r + 1), {r, (r + 1) % ranks}, 2});
    job.call(r, 1, (r + 1) * 1e7, -1);
    Event& event = job.lists[static_cast<std::size_t>(r)]->events.back();
    event.group = group;
    event.async = async;
    event.awaited = !async;
  }
  return job;
}

TEST(Watch, comms_that_are_used_in_opposite_order_are_one_verdict) {
  const WatchReport report = crossed(2).report(3 * second);
  ASSERT_EQ(report.verdicts.size(), 1u);
  EXPECT_EQ(report.verdicts[0].kind, "stuck");
  EXPECT_EQ(report.verdicts[0].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(
      report.verdicts[0].sentence,
      "for 3.0 s: ranks 0, 1 use comms made/1 and made/2 in opposite order, a cycle: rank 0 in all_reduce #1 on made/1, "
      "rank 1 in all_reduce #1 on made/2; issue their operations in one order on all ranks, or asynchronously");
}

TEST(Watch, a_cycle_of_three_comms_is_one_verdict) {
  const WatchReport report = crossed(3).report(3 * second);
  ASSERT_EQ(report.verdicts.size(), 1u);
  EXPECT_THAT(report.verdicts[0].sentence,
              HasSubstr("comms made/1, made/2, made/3 wait for each other on ranks 0, 1, 2, a cycle"));
}

TEST(Watch, operations_that_nobody_waits_for_make_no_cycle) {
  const WatchReport report = crossed(2, true).report(3 * second);
  ASSERT_EQ(report.verdicts.size(), 2u);
  EXPECT_THAT(report.verdicts[0].sentence, EndsWith("; the last call of rank 1 is all_reduce #1 on made/2 (started)"));
}

TEST(Watch, what_became_slower_is_not_an_alarm) {
  Job job(2);
  for (int i = 1; i <= 200; ++i)
    for (int r = 0; r < 2; ++r) {
      const double at = i * 1e9;
      job.call(r, static_cast<std::uint64_t>(i), at, at + (i > 150 ? 9e5 : 3e5));
    }
  const WatchReport report = job.report(200.5 * second);
  const WatchVerdict* slower = find(report, "slower");
  ASSERT_NE(slower, nullptr);
  EXPECT_NEAR(slower->us, 600, 1);
  EXPECT_FALSE(report.alarming());
}

TEST(Watch, killed_and_stopped_processes_are_told_apart) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  EXPECT_EQ(process_state(child), ProcessState::running);
  kill(child, SIGSTOP);
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(process_state(child), ProcessState::stopped);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  EXPECT_EQ(process_state(child), ProcessState::gone);
  Job job(2);
  for (int r = 0; r < 2; ++r) job.call(r, 1, 1e7, 2e7);
  const WatchReport report = job.report(second, {{0, ProcessState::running}, {1, ProcessState::gone}});
  const WatchVerdict* gone = find(report, "gone");
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->ranks, std::vector<int>{1});
  EXPECT_THAT(prometheus_text(report), HasSubstr("medley_verdict{kind=\"gone\",group=\"\",op=\"\",ranks=\"1\"}"));
}

}  // namespace
}  // namespace medley::trace

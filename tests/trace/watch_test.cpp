// Verdicts on synthetic recordings of running jobs: which ranks are stuck, gone or late, and what became
// slower.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/watch.hpp"

namespace medley::trace {
namespace {

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
  EXPECT_THAT(stuck->sentence, HasSubstr("rank 1: its last call is all_reduce #1 on world (complete)"));
}

TEST(Watch, a_straggler_is_found_by_its_arrivals_though_all_end_together) {
  Job job(4);
  for (int i = 1; i <= 200; ++i) {
    for (int r = 0; r < 4; ++r)
      job.call(r, static_cast<std::uint64_t>(i), i * 1e7 + (r == 2 && i > 100 ? 4e6 : r * 1e3),
               i * 1e7 + 5e6);
  }
  const WatchReport report = job.report(2.01 * second);
  const WatchVerdict* late = find(report, "late");
  ASSERT_NE(late, nullptr);
  EXPECT_EQ(late->ranks, std::vector<int>{2});
  EXPECT_NEAR(late->us, 4000, 10);
  EXPECT_NEAR(late->since_s, 1.0, 0.02) << "since it became late";
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
  EXPECT_THAT(prometheus_text(report),
              HasSubstr("medley_verdict{kind=\"gone\",group=\"\",op=\"\",ranks=\"1\"}"));
}

}  // namespace
}  // namespace medley::trace

// The progress thread: operations complete, and deadlines expire, while no caller is inside Medley.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <span>
#include <thread>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;

void with_thread(ContextOptions& options) { options.progress_thread = UseThread::always; }

/// Waits without calling Medley; error() and reading memory make no progress.
bool becomes(const std::function<bool()>& condition, std::chrono::seconds at_most = 30s) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ProgressThread, CompletesWhatNobodyWaitsFor) {
  test::run_threads(
      3,
      [](Context& context) {
        Comm world = context.world();
        std::vector<float> large(300'000, 1.0f);
        std::vector<std::int32_t> small(3, world.rank());
        const Work first = world.all_reduce(large, sum, {.async = true});
        const Work second = world.all_reduce(small, max, {.async = true});
        EXPECT_TRUE(becomes([&] { return first.complete() && second.complete(); }));
        EXPECT_EQ(large.front(), 3.0f);
        EXPECT_EQ(large.back(), 3.0f);
        EXPECT_EQ(small[0], 2);
        world.barrier();
      },
      with_thread);
}

TEST(ProgressThread, TakesOverFromACallerWhoWaitedLongAndLeft) {
  std::atomic<bool> left = false;
  test::run_threads(
      2,
      [&](Context& context) {
        Comm world = context.world();
        float late = 0, early = 0, value = 7;
        if (world.rank() == 0) {
          const Work pending = world.recv(std::span(&late, 1), 1, {.async = true, .tag = 1});
          world.recv(std::span(&early, 1), 1, {.tag = 2});  // long enough for the thread to leave progress to this wait
          left = true;
          EXPECT_TRUE(becomes([&] { return pending.complete(); }));
          EXPECT_EQ(late, 7.0f);
        } else {
          std::this_thread::sleep_for(20ms);  // how long the other waits; the test does not depend on it
          world.send(std::span(&value, 1), 0, {.tag = 2});
          EXPECT_TRUE(becomes([&] { return left.load(); }));
          world.send(std::span(&value, 1), 0, {.tag = 1});
        }
        world.barrier();
      },
      with_thread);
}

TEST(ProgressThread, EndsAnOperationAtItsDeadline) {
  test::run_threads(
      2,
      [](Context& context) {  // both wait for a message that is never sent
        Comm world = context.world();
        float value = 0;
        const Work work = world.recv(std::span(&value, 1), 1 - world.rank(), {.async = true, .deadline = 100ms});
        EXPECT_TRUE(becomes([&] { return work.error() != nullptr; }));
        ASSERT_NE(work.error(), nullptr);
        EXPECT_EQ(work.error()->kind(), ErrorKind::timeout);
      },
      with_thread);
}

TEST(ProgressThread, IsLeftBehindByAFork) {
  test::run_processes(
      2,
      [](Context& context) {
        Comm world = context.world();
        const pid_t child = fork();
        if (child == 0) {
          try {
            world.barrier();
          } catch (const Error&) {
            _exit(7);
          }
          _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        EXPECT_EQ(WEXITSTATUS(status), 7);
        world.barrier();
      },
      with_thread);
}

TEST(ProgressThread, StopsWithWorkPending) {
  std::barrier both_wait(2);  // the first to leave aborts the comm for the other
  test::run_threads(
      2,
      [&](Context& context) {
        static float nowhere[2];
        Comm world = context.world();
        world.recv(std::span(&nowhere[world.rank()], 1), 1 - world.rank(), {.async = true});
        both_wait.arrive_and_wait();
      },
      with_thread);
}

}  // namespace
}  // namespace medley

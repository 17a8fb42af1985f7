// The error when a deadline passes: who is where, who is missing, and whether it is a cycle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string error_of(ErrorKind kind, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(Diagnosis, NamesTheRankThatDidNotCall) {
  test::run_processes(3, [](Context& context) {
    Comm world = context.world();
    std::vector<float> x(10, 1.0f);
    world.all_reduce(x, sum);
    if (world.rank() == 2) {  // skips one, and waits until the others have failed
      EXPECT_THAT(error_of(ErrorKind::timeout, [&] { world.recv(x, 0, {.deadline = 20s}); }),
                  HasSubstr("rank 2 has not called #2"));
      return;
    }
    const std::string told = error_of(ErrorKind::timeout, [&] { world.all_reduce(x, sum, {.deadline = 300ms}); });
    EXPECT_THAT(told, HasSubstr("rank 2 has not called #2 of this comm"));
    EXPECT_THAT(told, HasSubstr("rank 1: completed #1, issued #2; all_reduce #2 over shm running"));
    EXPECT_THAT(told, HasSubstr("rank 2: completed #1, issued #1; recv"));
  });
}

TEST(Diagnosis, SeesACycleBetweenComms) {
  test::Shared<std::atomic<int>> told_so_far, cycles;
  test::run_processes(2, [&](Context& context) {
    Comm world = context.world();
    Comm other = world.dup();
    float x = 1, y = 1;
    const std::string told = error_of(ErrorKind::timeout, [&] {
      const Options soon{.deadline = 400ms};
      (world.rank() == 0 ? world : other).all_reduce(std::span(&x, 1), sum, soon);
      (world.rank() == 0 ? other : world).all_reduce(std::span(&y, 1), sum, soon);
    });
    if (told.find("This is a cycle") != std::string::npos) ++*cycles;
    ++*told_so_far;
    while (*told_so_far < 2) std::this_thread::yield();  // it can still be queried
  });
  EXPECT_GE(*cycles, 1);  // the first to time out sees it; the other may ask when that one has failed already
}

TEST(Diagnosis, OfALostRankComesSoonOnEveryCommThatHasIt) {
  test::run_processes(3, [](Context& context) {
    Comm world = context.world();
    Comm pair = world.subset({0, 1});
    if (world.rank() == 2) _exit(0);  // without a goodbye
    float x = 1;
    EXPECT_THAT(error_of(ErrorKind::rank_lost, [&] { world.all_reduce(std::span(&x, 1), sum); }), HasSubstr("rank 2"));
    pair.all_reduce(std::span(&x, 1), sum);  // continues to work
    EXPECT_EQ(x, 2.0f);
  });
}

}  // namespace
}  // namespace medley

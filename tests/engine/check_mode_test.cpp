// Check mode: the first difference between the ranks' calls is an error on all of them, with a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Calls = std::function<void(Comm&)>;

/// Every rank makes its calls and must get a mismatch error with these words.
void expect_told(int ranks, const Calls& calls, const std::vector<std::string>& words) {
  setenv("MEDLEY_CHECK", "1", 1);
  test::run_threads(ranks, [&](Context& context) {
    Comm world = context.world();
    std::string told = "no error";
    try {
      calls(world);
      world.barrier();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::mismatch) << error.what();
      told = error.what();
    }
    for (const std::string& word : words) EXPECT_THAT(told, HasSubstr(word)) << "on rank " << world.rank();
  });
  unsetenv("MEDLEY_CHECK");
}

TEST(CheckMode, LetsEqualCallsPass) {
  setenv("MEDLEY_CHECK", "1", 1);
  test::run_threads(3, [](Context& context) {
    Comm world = context.world();
    Comm pair = world.subset({0, 2});
    std::vector<float> x(1000, 1.0f), y(3000);
    for (int i = 0; i < 20; ++i) {
      Work first = world.all_reduce(x, avg, {.async = true});
      if (pair) pair.barrier();
      world.all_gather(x, y);
      first.wait();
      world.broadcast(x, i % 3);
      world.send(x, (world.rank() + 1) % 3, {.async = true});
      world.recv(std::span(y).first(1000), (world.rank() + 2) % 3);
    }
    EXPECT_EQ(y[2999], 1.0f);
  });
  unsetenv("MEDLEY_CHECK");
}

TEST(CheckMode, SeesAnotherRoot) {
  expect_told(3,
              [](Comm& world) {
                std::vector<float> x(8, 1.0f);
                world.broadcast(x, world.rank() == 2 ? 1 : 0);
              },
              {"called different things as collective #1", "rank 2: broadcast of 8 f32 with root 1", "with root 0"});
}

TEST(CheckMode, SeesAnotherReduction) {
  expect_told(2,
              [](Comm& world) {
                std::vector<float> x(8, 1.0f);
                world.barrier();
                world.all_reduce(x, world.rank() == 0 ? sum : max);
              },
              {"collective #2", "rank 0: all_reduce of 8 f32 by sum (over shm)",
               "rank 1: all_reduce of 8 f32 by max (over shm)"});
}

TEST(CheckMode, SeesAnotherCountTypeOperationOrRoute) {
  expect_told(2,
              [](Comm& world) {
                std::vector<float> x(world.rank() == 0 ? 8 : 9, 1.0f);
                world.all_reduce(x, sum);
              },
              {"of 8 f32", "of 9 f32"});
  expect_told(2,
              [](Comm& world) {
                std::vector<float> x(8);
                std::vector<std::int32_t> y(8);
                world.rank() == 0 ? world.all_reduce(x, sum) : world.all_reduce(y, sum);
              },
              {"f32", "i32"});
  expect_told(2,
              [](Comm& world) {
                std::vector<float> x(8);
                world.rank() == 0 ? world.all_reduce(x, sum) : world.barrier();
              },
              {"rank 1: barrier"});
  expect_told(2,
              [](Comm& world) {
                std::vector<float> x(8);
                world.all_reduce(x, sum, {.algorithm = world.rank() == 0 ? "ring" : "pairwise"});
              },
              {"(over shm, ring)", "(over shm, pairwise)"});
}

TEST(CheckMode, SeesSwappedOrder) {
  expect_told(2,
              [](Comm& world) {
                std::vector<float> x(8), y(4);
                Work one = world.all_reduce(world.rank() == 0 ? x : y, sum, {.async = true});
                Work two = world.all_reduce(world.rank() == 0 ? y : x, sum, {.async = true});
                one.wait();
                two.wait();
              },
              {"of 8 f32", "of 4 f32"});
}

}  // namespace
}  // namespace medley

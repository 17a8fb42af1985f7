// Moving off a shared core: after how many waits in a row a thread sleeps, told by the kernel's count of its sleeps.
#include "core/shared_core.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace medley::core {
namespace {

long sleeps_of_this_thread() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  return used.ru_nvcsw;
}

/// How many waits whose core was taken it takes until the thread sleeps.
int waits_until_it_sleeps(SharedCore& core) {
  const long before = sleeps_of_this_thread();
  for (int waits = 1; waits < 10'000; ++waits) {
    core.taken();
    if (sleeps_of_this_thread() > before) return waits;
  }
  return -1;
}

TEST(SharedCore, SleepsAfterThreeWaitsInARow) {
  SharedCore core;
  EXPECT_EQ(waits_until_it_sleeps(core), 3);
}

TEST(SharedCore, SleepsHalfAsOftenWhereItDoesNotHelp) {
  SharedCore core;
  for (const int expected : {3, 6, 12, 24}) EXPECT_EQ(waits_until_it_sleeps(core), expected);
}

TEST(SharedCore, StartsAnewAfterAWaitOnACoreOfItsOwn) {
  SharedCore core;
  EXPECT_EQ(waits_until_it_sleeps(core), 3);
  core.taken();
  core.taken();
  core.own();
  EXPECT_EQ(waits_until_it_sleeps(core), 3);
}

}  // namespace
}  // namespace medley::core

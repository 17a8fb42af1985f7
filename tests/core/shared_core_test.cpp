// When waits sleep rather than yield.
#include "core/shared_core.hpp"

#include <gtest/gtest.h>

namespace medley::core {
namespace {

int sleeps_in_a_row(SharedCore& core) {
  int sleeps = 0;
  while (core.sleep_rather()) ++sleeps;
  return sleeps;
}

TEST(SharedCore, YieldsUntilTheCoreIsTaken) {
  SharedCore core;
  EXPECT_EQ(sleeps_in_a_row(core), 0);
  core.taken();
  EXPECT_EQ(sleeps_in_a_row(core), 1);
  EXPECT_EQ(sleeps_in_a_row(core), 0);
}

TEST(SharedCore, YieldsMoreRarelyWhereTheCoreIsTakenAgainAndAgain) {
  SharedCore core;
  for (const int expected : {1, 2, 4, 8, 16, 32, 64, 64}) {
    core.taken();
    EXPECT_EQ(sleeps_in_a_row(core), expected);
  }
}

TEST(SharedCore, StartsAnewOnceAYieldCameBackAtOnce) {
  SharedCore core;
  core.taken();
  core.taken();
  EXPECT_EQ(sleeps_in_a_row(core), 2);
  core.own();
  core.taken();
  EXPECT_EQ(sleeps_in_a_row(core), 1);
}

}  // namespace
}  // namespace medley::core

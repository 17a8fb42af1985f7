// Which way large broadcasts take: the faster of two, found by timing both.
#include "backends/shm/path_choice.hpp"

#include <gtest/gtest.h>

namespace medley::shm {
namespace {

/// Runs `count` broadcasts at these rates, in bytes per ns; returns how many took the segment.
int run(PathChoice& choice, int count, double direct, double segment) {
  int through = 0;
  for (int i = 0; i < count; ++i) {
    const bool by_segment = choice.segment();
    through += by_segment;
    choice.took(by_segment, by_segment ? segment : direct);
  }
  return through;
}

TEST(ShmPathChoice, SettlesOnTheFasterWayAndTriesTheOtherEverMoreRarely) {
  for (const bool segment_is_faster : {false, true}) {
    PathChoice choice;
    const auto slower = [&](int count) {
      const int through = segment_is_faster ? run(choice, count, 4, 5) : run(choice, count, 5, 4);
      return segment_is_faster ? count - through : through;
    };
    EXPECT_LE(slower(100), 6);
    slower(2000);
    EXPECT_LE(slower(5000), 5);
  }
}

TEST(ShmPathChoice, FollowsWhenTheFasterWayBecomesTheSlowerOne) {
  PathChoice choice;
  run(choice, 200, 8, 5);
  EXPECT_GE(run(choice, 200, 2, 5), 180);
}

TEST(ShmPathChoice, KeepsTheFasterWayAfterAnInterruption) {
  PathChoice choice;
  run(choice, 20, 8, 5);
  choice.took(false, 0.01);
  EXPECT_LE(run(choice, 20, 8, 5), 2);
}

TEST(ShmPathChoice, HasABucketForEverySize) {
  PathChoices choices;
  for (std::size_t bytes = 1; bytes != 0; bytes <<= 1) EXPECT_LT(choices.of(PathChoices::bucket(bytes)).segment(), 2);
}

}  // namespace
}  // namespace medley::shm

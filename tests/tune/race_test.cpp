// When a race of routes is decided, on synthetic samples.
#include "tune/race.hpp"

#include <gtest/gtest.h>

#include <random>

namespace medley::tune {
namespace {

std::vector<double> noisy(double middle, double spread, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> noise(0, spread);
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) samples.push_back(middle * noise(random));
  return samples;
}

Race contest_of(std::vector<std::vector<double>> samples) {
  Race race;
  for (auto& one : samples) {
    race.add({"shm", "r" + std::to_string(race.candidates.size())});
    race.candidates.back().samples_us = std::move(one);
  }
  return race;
}

TEST(MedianInterval, HoldsTheTrueMedianInAtLeastNineOfTenCases) {
  int held = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Interval interval = median_interval(noisy(10, 0.3, 25, seed));
    held += interval.low <= 10 && 10 <= interval.high;
  }
  EXPECT_GE(held, 368);  // 95 % of 400 is 380; six deviations below would be 354
}

TEST(MedianInterval, OfFewSamplesIsAllOfThem) {
  const Interval interval = median_interval({3, 1, 2});
  EXPECT_EQ(interval.low, 1);
  EXPECT_EQ(interval.high, 3);
}

TEST(Race, EndsWhenTheIntervalsPart) {
  Race race = contest_of({noisy(10, 0.05, 12, 1), noisy(15, 0.05, 12, 2), noisy(20, 0.05, 12, 3)});
  EXPECT_TRUE(race.settle());
  EXPECT_FALSE(race.candidates[0].out);
  EXPECT_TRUE(race.candidates[1].out);
  const route::Cell cell = race.cell({});
  EXPECT_EQ(cell.routes.front().route.algorithm, "r0");
  EXPECT_GT(cell.confidence, 0.99);
}

TEST(Race, GoesOnWhileTheIntervalsOverlap) {
  std::vector<double> first, second;
  for (int i = 0; i < 12; ++i) first.push_back(8 + i / 3.0), second.push_back(8.5 + i / 3.0);
  Race race = contest_of({first, second});
  EXPECT_FALSE(race.settle());
  EXPECT_LT(race.cell({}).confidence, 0.95);
}

TEST(Race, FewSamplesDecideOnlyWhatIsHopeless) {
  Race race = contest_of({{10, 10.1, 10, 10, 10}, {12, 12.1, 12, 12, 12}, {100, 101, 99, 100, 100}, {100, 101}});
  EXPECT_FALSE(race.settle());
  EXPECT_FALSE(race.candidates[1].out);
  EXPECT_TRUE(race.candidates[2].out);
  EXPECT_FALSE(race.candidates[3].out) << "two samples may have met the same disturbance";
}

TEST(Race, EqualRoutesNeedNoWinner) {
  Race race = contest_of({noisy(10, 0.02, 200, 1), noisy(10.05, 0.02, 200, 2)});
  EXPECT_TRUE(race.settle());
}

route::Timing known(const char* algorithm, double middle, std::int64_t samples) {
  return {{"shm", algorithm}, middle, middle * 0.98, middle * 1.02, samples};
}

TEST(Merged, JudgesOverKeptRoutesToo) {
  const route::Cell before{{}, {known("kept", 5, 20), known("again", 5.2, 40), known("last", 9, 10)}, 0.97};
  const route::Cell fresh{{}, {known("again", 5.2, 10), known("last", 9, 10)}, 1};
  const route::Cell cell = merged(fresh, before);
  ASSERT_EQ(cell.routes.size(), 3u);
  EXPECT_EQ(cell.routes[0].route.algorithm, "kept");
  EXPECT_EQ(cell.routes[1].samples, 50);
  EXPECT_NEAR(cell.routes[1].median_us, 5.2, 1e-9);
  EXPECT_DOUBLE_EQ(cell.confidence, confidence_of(cell.routes[0], cell.routes[1]));
}

TEST(Merged, BringsWhatWasKnownToTheWeatherOfTheNewVisit) {
  const route::Cell before{{}, {known("kept", 5, 20), known("again", 9, 40), known("last", 30, 10)}, 0.97};
  const route::Cell fresh{{}, {known("again", 18, 10), known("last", 60, 10)}, 1};
  const route::Cell cell = merged(fresh, before);
  ASSERT_EQ(cell.routes.size(), 3u);
  EXPECT_DOUBLE_EQ(cell.routes[0].median_us, 10);
  EXPECT_DOUBLE_EQ(cell.routes[0].high_us, 10.2);
  EXPECT_NEAR(cell.routes[1].median_us, 18, 1e-9);
  EXPECT_NEAR(cell.routes[2].median_us, 60, 1e-9);
}

TEST(Merged, IsUnsureWhereTwoVisitsContradictEachOther) {
  const route::Cell before{
      {}, {known("a", 10, 20), known("b", 12, 20), known("c", 40, 20), known("d", 50, 20), known("e", 60, 20)}, 1};
  const route::Cell fresh{
      {}, {known("b", 10, 20), known("a", 12, 20), known("c", 40, 20), known("d", 50, 20), known("e", 60, 20)}, 1};
  const route::Cell cell = merged(fresh, before);
  EXPECT_NEAR(cell.routes[0].median_us, std::sqrt(120.), 1e-9);
  EXPECT_LE(cell.routes[0].low_us, 10);
  EXPECT_GE(cell.routes[0].high_us, 12);
  EXPECT_LT(cell.confidence, 0.95);
}

/// A clock and routes that take prescribed times.
struct MadeUp {
  struct Clock {};
  std::vector<double> us;
  int checked = 0;
  void check(const Choice&) { ++checked; }
  void run(const Choice&, int) {}
  Sample time(Clock&, const Choice& route, int = 1) {
    return {us[static_cast<std::size_t>(route.algorithm[1] - '0')], 0, 0};
  }
};

TEST(Race, GivesNoTurnToWhatIsHopelessFromTheBeginning) {
  Race race = contest_of({{}, {}, {}, {}});
  MadeUp workload{{5, 20, 51, 5000}};
  MadeUp::Clock clock;
  race.warm_up(clock, workload, 0, 1);
  race.drop_far_behind(clock, workload);
  EXPECT_EQ(workload.checked, 4);
  for (std::size_t round = 0; round < Race::least_samples; ++round) race.run_round(clock, workload, round);
  EXPECT_TRUE(race.settle());
  const route::Cell cell = race.cell({});
  ASSERT_EQ(cell.routes.size(), 4u);
  EXPECT_EQ(cell.routes[1].samples, Race::least_samples);
  EXPECT_EQ(cell.routes[2].samples, 5);
  EXPECT_EQ(cell.routes[3].samples, 5);
  EXPECT_EQ(cell.confidence, 1);
}

TEST(Race, GivesASecondChanceToWhatWasHeldUp) {
  Race race = contest_of({{}, {}, {}});
  MadeUp workload{{5000, 60, 4000}};
  MadeUp::Clock clock;
  race.warm_up(clock, workload, 0, 1);
  workload.us[0] = 5;  // when the disturbance is over
  race.drop_far_behind(clock, workload);
  EXPECT_FALSE(race.candidates[0].out);
  EXPECT_EQ(race.candidates[0].first_us, 5);
  EXPECT_TRUE(race.candidates[2].out);
}

TEST(Confidence, IsNotShakenByAHopelessRouteThatVaries) {
  const route::Timing first{{"shm", "a"}, 5, 4.9, 5.1, 20}, wild{{"gloo", "a"}, 60, 55, 5000, 3};
  EXPECT_EQ(confidence_of(first, wild), 1);
}

TEST(Race, MeasuresWhatIsBehindRarelyButAllAlong) {
  Race race = contest_of({{}, {}});
  MadeUp workload{{5, 9}};
  MadeUp::Clock clock;
  race.warm_up(clock, workload, 0, 1);
  race.candidates[1].rare = true;
  for (std::size_t round = 0; round < 4 * Race::rare_rounds; ++round) race.run_round(clock, workload, round);
  EXPECT_EQ(race.candidates[0].samples_us.size(), 4 * Race::rare_rounds);
  EXPECT_EQ(race.candidates[1].samples_us.size(), 4u);
}

TEST(Confidence, IsACoinForEqualsAndGrowsWithTheDistance) {
  const auto timing = [](double middle) { return route::Timing{{"a", "b"}, middle, middle - 1, middle + 1, 20}; };
  EXPECT_DOUBLE_EQ(confidence_of(timing(10), timing(10)), 0.5);
  EXPECT_GT(confidence_of(timing(10), timing(11)), confidence_of(timing(10), timing(10.5)));
  EXPECT_GT(confidence_of(timing(10), timing(14)), 0.999);
}

TEST(Confidence, OfFewSamplesIsLow) {
  const auto timing = [](double middle, std::int64_t samples) {
    return route::Timing{{"a", "b"}, middle, middle, middle, samples};
  };
  EXPECT_EQ(confidence_of(timing(1, 1), timing(9, 1)), 0.5);
  EXPECT_EQ(confidence_of(timing(1, 4), timing(2, 4)), 0.9);
  EXPECT_EQ(confidence_of(timing(1, 4), timing(9, 4)), 1);
}

}  // namespace
}  // namespace medley::tune

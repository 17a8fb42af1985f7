// The search for a step's routes, on steps whose times are known: it finds the best mix, keeps the best library where
// no mix is surely faster, and has an answer at any time.
#include "tune/step_search.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "tune/statistics.hpp"

namespace medley::tune {
namespace {

/// A step of two slots on a machine with two libraries: the time of each route in each slot, the cost of using both
/// libraries, and noise.
struct Machine {
  double cost[2][2];  // by slot and library (a, b)
  double mixing = 0;
  double noise = 0.02;
  double step_us = 0;  // of time per sample; 0: what the sample took
  double limit_us = 1e7;
  double used_us = 0;
  int samples = 0, stop_after = 1 << 30, decisions = 0;
  int disturbed_at_first = 0;  // samples of library a that other work slows down
  double slower_c = 50;        // how much longer a step takes over library c
  double aftermath_us = 0;     // how long the threads of library c run on after its last operation
  double busy_until_us = 0;
  core::Random random{7};

  double time(const Assignment& one) {
    const int first = one.routes[0].backend == "b", second = one.routes[1].backend == "b";
    double clean = cost[0][first] + cost[1][second] + (first != second ? mixing : 0);
    if (one.name == "a" && disturbed_at_first-- > 0) clean *= 4;
    if (one.name == "c") clean *= slower_c;
    if (one.name != "c" && used_us < busy_until_us) clean *= 8;
    if (one.name == "c") busy_until_us = used_us + 2 * clean + aftermath_us;
    const double us = clean * (1 + noise * (static_cast<double>(random.below(2001)) / 1000 - 1));
    used_us += 2 * us;
    ++samples;
    return us;
  }
  SearchJob job() {
    return {.time_us = [this](const Assignment& one) { return time(one); },
            .over = [this](double share) { return samples >= stop_after || used_us >= share * limit_us; },
            .left_us = [this](double share) { return std::max(0.0, share * limit_us - used_us); },
            .agree = [this](std::vector<std::uint8_t>&) { ++decisions; }};
  }
};

const std::vector<StepSlot> slots{{.op = Op::all_reduce, .dtype = route::DTypeClass::floating, .bytes = 512 << 10},
                                  {.op = Op::all_to_all, .bytes = 1 << 20}};
const std::vector<std::vector<Choice>> alternatives{{{"a", "native"}, {"b", "native"}},
                                                    {{"a", "native"}, {"b", "native"}}};

Assignment over(const std::string& library) { return {library, {{library, "native"}, {library, "native"}}}; }

StepVerdict search(Machine& machine, StepSearch& search) {
  static_cast<void>(machine);
  search.add(over("a"), true);
  search.add(over("b"), true);
  search.measure_at_first();
  search.improve(slots, alternatives);
  search.compare_with_libraries();
  return search.verdict();
}

TEST(StepSearch, FindsTheMixThatIsFasterThanEveryLibrary) {
  Machine machine{.cost = {{100, 200}, {300, 150}}};
  StepSearch searched(machine.job());
  const StepVerdict found = search(machine, searched);
  ASSERT_NE(found.chosen, nullptr);
  EXPECT_FALSE(found.chosen->library);
  EXPECT_EQ(found.chosen->assignment.routes[0].backend, "a");
  EXPECT_EQ(found.chosen->assignment.routes[1].backend, "b");
  EXPECT_TRUE(found.settled);
  EXPECT_EQ(found.library->assignment.name, "b");
  EXPECT_NEAR(found.gain, 350.0 / 250, 0.05);
  EXPECT_LT(found.gain_low, found.gain_high);
  EXPECT_GT(found.gain_low, 1);
  EXPECT_GT(machine.decisions, 0);  // rank 0's word was asked for
}

TEST(StepSearch, KeepsTheLibraryWhereOperationsAloneWouldMix) {
  // Alone, a and b look best; together they disturb each other
  Machine machine{.cost = {{100, 110}, {160, 150}}, .mixing = 80};
  StepSearch searched(machine.job());
  searched.add({"table", {{"a", "native"}, {"b", "native"}}}, false);
  const StepVerdict found = search(machine, searched);
  ASSERT_NE(found.chosen, nullptr);
  EXPECT_TRUE(found.chosen->library);
  EXPECT_EQ(found.gain, 1);
}

TEST(StepSearch, AMixWithinTheNoiseIsNotTaken) {
  int mixes = 0;
  for (int seed = 0; seed < 40; ++seed) {
    Machine machine{.cost = {{100, 100}, {100, 100}}, .noise = 0.3};  // all assignments are equal
    machine.random = core::Random(static_cast<std::uint64_t>(seed));
    machine.limit_us = 200'000;
    StepSearch searched(machine.job());
    mixes += search(machine, searched).chosen->library ? 0 : 1;
  }
  EXPECT_LE(mixes, 6);  // an interval of 95 % is wrong now and then
}

TEST(StepSearch, StoppedAtAnyTimeItNamesTheBestLibrarySoFar) {
  for (int stop = 1; stop < 60; ++stop) {
    Machine machine{.cost = {{100, 200}, {300, 150}}};
    machine.stop_after = stop;
    StepSearch searched(machine.job());
    const StepVerdict found = search(machine, searched);
    ASSERT_NE(found.chosen, nullptr) << stop;
    EXPECT_EQ(found.library->assignment.name, "b") << stop;
    if (stop < 16) {  // too few pairs for a mix
      EXPECT_EQ(found.chosen->assignment.name, "b") << stop;
    }
    EXPECT_FALSE(found.settled) << stop;
  }
}

TEST(StepSearch, ALibraryThatOtherWorkSlowedDownAtFirstIsMeasuredAgain) {
  Machine machine{.cost = {{100, 200}, {100, 200}}, .disturbed_at_first = 5};
  StepSearch searched(machine.job());
  searched.add({"mix", {{"a", "native"}, {"b", "native"}}}, false);  // faster than b, slower than a
  const StepVerdict found = search(machine, searched);
  EXPECT_EQ(found.chosen->assignment.name, "a");
}

TEST(StepSearch, ThreadsOfASlowLibraryDoNotSlowDownWhatIsMeasuredAfterIt) {
  Machine machine{.cost = {{100, 110}, {100, 110}}, .limit_us = 1e8, .aftermath_us = 4000};
  StepSearch searched(machine.job());
  searched.add(over("c"), true);
  const StepVerdict found = search(machine, searched);
  EXPECT_EQ(found.chosen->assignment.name, "a");
  for (const StepCandidate& one : searched.candidates()) {
    EXPECT_TRUE(one.assignment.name == "c" || median(one.us) < 300) << one.assignment.name;
  }
}

TEST(StepSearch, ALibraryThatAlwaysFollowedASlowOneIsMeasuredAfterARest) {
  // Every sample of a at first follows c and looks slow itself, so a could end up behind b.
  Machine machine{.cost = {{100, 130}, {100, 130}}, .limit_us = 1e8, .slower_c = 3, .aftermath_us = 15000};
  StepSearch searched(machine.job());
  searched.add(over("b"), true);
  searched.add(over("c"), true);
  searched.add(over("a"), true);
  searched.measure_at_first();
  searched.improve(slots, {{}, {}});
  searched.compare_with_libraries();
  EXPECT_EQ(searched.verdict().chosen->assignment.name, "a");
}

TEST(StepSearch, ALibraryThatWasDisturbedAtFirstIsComparedWithOneThatIsNearlyAsFast) {
  Machine machine{.cost = {{100, 105}, {100, 105}}, .mixing = 80, .disturbed_at_first = 5};
  StepSearch searched(machine.job());
  const StepVerdict found = search(machine, searched);
  EXPECT_EQ(found.chosen->assignment.name, "a");
  EXPECT_TRUE(found.compared);
}

TEST(StepSearch, NothingIsSettledThatWasNotCompared) {
  for (int stop = 1; stop < 400; ++stop) {
    Machine machine{.cost = {{100, 110}, {100, 110}}};
    machine.stop_after = stop;
    StepSearch searched(machine.job());
    const StepVerdict found = search(machine, searched);
    EXPECT_TRUE(found.compared || !found.settled) << stop;
  }
}

TEST(StepSearch, OfTwoEqualLibrariesEitherIsSettled) {
  Machine machine{.cost = {{100, 100}, {100, 100}}, .mixing = 50};
  StepSearch searched(machine.job());
  const StepVerdict found = search(machine, searched);
  EXPECT_TRUE(found.chosen->library);
  EXPECT_TRUE(found.settled);
  EXPECT_EQ(found.gain, 1);
}

TEST(StepSearch, WithoutTimeToImproveNothingIsSettled) {
  Machine machine{.cost = {{100, 100}, {100, 100}}, .mixing = 50};
  SearchJob job = machine.job();
  job.over = [](double share) { return share == StepSearch::share_of_improving; };
  StepSearch searched(job);
  EXPECT_FALSE(search(machine, searched).settled);
}

/// Every slot of a step takes as long as this function says for its backend.
SearchJob steady_job(double& used_us, double limit_us, std::function<double(const std::string&)> slot_us) {
  return {.time_us =
              [=, &used_us](const Assignment& one) {
                double us = 0;
                for (const Choice& route : one.routes) us += slot_us(route.backend);
                used_us += 2 * us;
                return us;
              },
          .over = [=, &used_us](double share) { return used_us >= share * limit_us; },
          .left_us = [=, &used_us](double share) { return std::max(0.0, share * limit_us - used_us); },
          .agree = [](std::vector<std::uint8_t>&) {}};
}

TEST(StepSearch, ALeaderIsComparedWithAllItsChangesBeforeItIsSettled) {
  double used_us = 0;
  const auto slot_us = [](const std::string& backend) { return backend == "a" ? 100 : backend == "r35" ? 70 : 105; };
  StepSearch searched(steady_job(used_us, 1e9, slot_us));
  searched.add(over("a"), true);
  searched.measure_at_first();
  std::vector<Choice> many;
  for (int i = 0; i < 40; ++i) many.push_back({"r" + std::to_string(i), "native"});
  searched.improve(slots, {many, many});  // 80 changes, more than one halving takes
  searched.compare_with_libraries();
  const StepVerdict found = searched.verdict();
  EXPECT_EQ(found.chosen->assignment.routes[0].backend, "r35");
  EXPECT_EQ(found.chosen->assignment.routes[1].backend, "r35");
  EXPECT_TRUE(found.settled);
}

TEST(StepSearch, AHalvingOfWhatWasNotMeasuredYetEndsInTime) {
  double used_us = 0;
  const auto slot_us = [](const std::string& backend) { return backend == "m7" ? 90 : 100; };
  StepSearch searched(steady_job(used_us, 650'000, slot_us));
  searched.add(over("a"), true);
  searched.add(over("b"), true);
  searched.measure_at_first();
  for (int i = 0; i < 30; ++i) searched.add(over("m" + std::to_string(i)), false);
  searched.improve(slots, {{}, {}});
  const auto& all = searched.candidates();
  const auto winner = std::find_if(all.begin(), all.end(), [](const auto& one) { return one.assignment.name == "m7"; });
  EXPECT_GE(winner->us.size(), 93u);  // five halvings of 3, 6, 12, 24 and 48 rounds
}

TEST(StepSearch, TheTimeThatItSaysItNeedsSettlesIt) {
  Machine hurried{.cost = {{100, 200}, {300, 150}}};
  hurried.limit_us = 3000;
  StepSearch first(hurried.job());
  ASSERT_FALSE(search(hurried, first).settled);
  ASSERT_GT(first.needed_seconds(), hurried.limit_us / 1e6);
  Machine patient{.cost = {{100, 200}, {300, 150}}};
  patient.limit_us = 1e6 * first.needed_seconds();
  StepSearch second(patient.job());
  EXPECT_TRUE(search(patient, second).settled);
}

/// Two ranks may share one core for seconds while another is free. What is as fast as library a then takes twice as long
/// with cores of their own.
TEST(StepSearch, AMixThatKeepsUpOnlyWhileCoresAreSharedIsNotTaken) {
  int mixes = 0, slower_library = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    core::Random random(seed);
    double used_us = 0, changes_at_us = 0;
    bool shared = seed % 2 == 0;
    const auto time_us = [&](const Assignment& one) {
      while (used_us >= changes_at_us) {
        shared = !shared;
        changes_at_us += 500'000 + static_cast<double>(random.below(6'000'000));
      }
      const auto over_a =
          std::count_if(one.routes.begin(), one.routes.end(), [](const Choice& c) { return c.backend == "a"; });
      const double alone_us = over_a == 2 ? 88 : over_a == 1 ? 137 : 170, shared_us = over_a == 1 ? 440 : 450;
      const double us = (shared ? shared_us : alone_us) * (0.95 + static_cast<double>(random.below(1001)) / 1e4);
      used_us += 2 * us;
      return us;
    };
    StepSearch searched({.time_us = time_us,
                         .over = [&](double share) { return used_us >= share * 2e7; },
                         .left_us = [&](double share) { return std::max(0.0, share * 2e7 - used_us); },
                         .agree = [](std::vector<std::uint8_t>&) {}});
    searched.add(over("a"), true);
    searched.add(over("b"), true);
    searched.measure_at_first();
    searched.improve(slots, alternatives);
    searched.compare_with_libraries();
    const StepCandidate& chosen = *searched.verdict().chosen;
    mixes += chosen.library ? 0 : 1;
    slower_library += chosen.assignment.name == "b" ? 1 : 0;
  }
  EXPECT_EQ(mixes, 0);
  EXPECT_LE(slower_library, 3);  // cores may be shared during a whole comparison of libraries
}

TEST(StepSearch, AMixThatGainsLessThanOneJobDiffersFromTheNextIsNotTaken) {
  Machine machine{.cost = {{100, 102}, {103, 100}}, .noise = 0.005};  // a and b together are 1.5 % faster than a
  machine.limit_us = 1e8;
  StepSearch searched(machine.job());
  const StepVerdict found = search(machine, searched);
  EXPECT_TRUE(found.chosen->library);
  EXPECT_TRUE(found.settled);
}

TEST(StepSearch, AMixIsComparedWithALibraryThatOnlyLookedSlowerAtFirst) {
  // The mix beats b by 14 %, and is as fast as c, which other work slowed down at first and again.
  int slow_c = 12;
  double used_us = 0;
  SearchJob job{.time_us =
                    [&](const Assignment& one) {
                      double us = one.routes[0].backend == one.routes[1].backend ? 160 : 140;
                      if (one.routes[0].backend == "c") us = slow_c-- > 0 ? 150 : 140;
                      used_us += 2 * us;
                      return us;
                    },
                .over = [&](double share) { return used_us >= share * 2e7; },
                .left_us = [&](double share) { return std::max(0.0, share * 2e7 - used_us); },
                .agree = [](std::vector<std::uint8_t>&) {}};
  StepSearch searched(job);
  for (const char* library : {"a", "b", "c"}) searched.add(over(library), true);
  searched.measure_at_first();
  searched.improve(slots, alternatives);
  searched.compare_with_libraries();
  const StepVerdict found = searched.verdict();
  EXPECT_TRUE(found.chosen->library);
  EXPECT_EQ(found.library->assignment.name, "c");
}

TEST(StepSearch, AStepWithoutAlternativesSettles) {
  double used_us = 0;
  StepSearch searched(steady_job(used_us, 2e7, [](const std::string&) { return 100; }));
  searched.add(over("a"), true);
  searched.measure_at_first();
  searched.improve(slots, {{{"a", "native"}}, {{"a", "native"}}});
  searched.compare_with_libraries();
  EXPECT_TRUE(searched.verdict().settled);
}

TEST(StepSearch, LongStepsEndInTimeAndAllTimeIsForTheLibraries) {
  double used_us = 0;
  StepSearch searched(
      steady_job(used_us, 2e7, [](const std::string& backend) { return backend == "a" ? 1e6 : 1.08e6; }));
  for (const char* library : {"b", "a", "c", "d", "e", "f", "g", "h"}) searched.add(over(library), true);
  searched.measure_at_first();
  EXPECT_LE(used_us, 1.3e7);  // 8 libraries would take 34 s
  EXPECT_FALSE(searched.worth_improving());
  searched.compare_with_libraries();
  EXPECT_LE(used_us, 2.5e7);
  EXPECT_EQ(searched.verdict().chosen->assignment.name, "a");
  EXPECT_FALSE(searched.verdict().settled);
}

/// Libraries and pairs on a step of a tenth of a second, as of a training program; what the search says after this time.
StepVerdict verdict_on_long_steps(double seconds, double pair_us, std::uint64_t seed) {
  core::Random random(seed);
  double used_us = 0;
  SearchJob job{.time_us =
                    [&](const Assignment& one) {
                      const std::string& backend = one.routes[0].backend;
                      double us = backend == "a" ? 96e3 : backend == "b" ? 103e3 : backend == "c" ? 130e3 : pair_us;
                      us *= 0.94 + static_cast<double>(random.below(1201)) / 1e4;
                      used_us += us;
                      return us;
                    },
                .over = [&](double share) { return used_us >= share * seconds * 1e6; },
                .left_us = [&](double share) { return std::max(0.0, share * seconds * 1e6 - used_us); },
                .agree = [](std::vector<std::uint8_t>&) {}};
  StepSearch searched(job);
  for (const char* library : {"a", "b", "c"}) searched.add(over(library), true);
  for (const char* pair : {"x+a", "x+b"}) searched.add(over(pair), false);
  searched.measure_at_first();
  EXPECT_EQ(searched.worth_improving(), seconds > 20);
  if (searched.worth_improving()) {
    used_us = std::max(used_us, 0.75 * seconds * 1e6);  // single operations took longer than they should
    searched.improve(slots, {{}, {}});
  } else {
    searched.lead_with_fastest();
  }
  searched.compare_with_libraries();
  EXPECT_LE(used_us, seconds * 1e6 + 5e5);
  return searched.verdict();
}

TEST(StepSearch, APairThatIsFasterIsFoundOnLongStepsToo) {
  int pairs = 0, of_equal_ones = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const double seconds : {12., 40.}) {
      pairs += verdict_on_long_steps(seconds, 86e3, seed).chosen->library ? 0 : 1;
      of_equal_ones += verdict_on_long_steps(seconds, 96e3, seed).chosen->library ? 0 : 1;
    }
  }
  EXPECT_GE(pairs, 36);
  EXPECT_EQ(of_equal_ones, 0);
}

TEST(StepSearch, OneSampleOfEachSaysNothingForCertain) {
  Machine machine{.cost = {{100, 200}, {300, 150}}};
  machine.limit_us = 0;
  StepSearch searched(machine.job());
  EXPECT_EQ(search(machine, searched).confidence, 0.5);
}

TEST(StepSearch, TooShortATimeStillMeasuresEveryLibraryOnce) {
  Machine machine{.cost = {{100, 200}, {300, 150}}};
  machine.limit_us = 0;
  StepSearch searched(machine.job());
  const StepVerdict found = search(machine, searched);
  EXPECT_EQ(found.chosen->assignment.name, "b");
  for (const StepCandidate& one : searched.candidates()) {
    EXPECT_TRUE(!one.library || one.us.size() == 1);
  }
}

}  // namespace
}  // namespace medley::tune

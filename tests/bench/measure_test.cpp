#include "mpi/measure.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "tune/forked_ranks.hpp"
#include "tune/shared_value.hpp"

namespace medley::bench {
namespace {

struct Calls {
  std::atomic<int> samples[2], prepares[2], operations[2], batch[2];
};

/// Two ranks measure an operation that does nothing; each counts its own calls.
void measure_on_two_ranks(const MeasureOptions& options, tune::SharedValue<Calls>& calls) {
  tune::SampleClock created = tune::SampleClock::create(2);
  const auto failed = tune::failed_forked_ranks(2, [&](int rank) {
    const auto body = [&](tune::SampleClock& clock) {
      clock.meet();
      const Measured measured = measure(
          clock, options, [&] { ++calls->prepares[rank]; }, [&] { ++calls->operations[rank]; });
      calls->samples[rank] = static_cast<int>(measured.samples_us.size());
      calls->batch[rank] = measured.batch;
      return true;
    };
    if (rank == 0) return body(created);
    tune::SampleClock opened = tune::SampleClock::open(created.name(), rank, 2);
    return body(opened);
  });
  ASSERT_EQ(failed, std::vector<int>{});
}

}  // namespace

TEST(Measure, RanksAgreeAndEverySampleIsPrepared) {
  tune::SharedValue<Calls> calls;
  measure_on_two_ranks({.seconds = 0.02}, calls);
  EXPECT_GE(calls->samples[0], 5);
  EXPECT_EQ(calls->samples[0], calls->samples[1]);
  for (int rank : {0, 1}) EXPECT_EQ(calls->prepares[rank], calls->operations[rank]);
  EXPECT_GE(calls->prepares[0], calls->samples[0] + 2);  // the warm-up
}

TEST(Measure, TakesItsLeastNumberOfSamplesEvenWithoutTime) {
  tune::SharedValue<Calls> calls;
  measure_on_two_ranks({.seconds = 0, .min_samples = 7}, calls);
  EXPECT_EQ(calls->samples[0], 7);
  EXPECT_EQ(calls->samples[1], 7);
}

TEST(Measure, StopsAtItsGreatestNumberOfSamples) {
  tune::SharedValue<Calls> calls;
  measure_on_two_ranks({.seconds = 100, .min_samples = 1, .max_samples = 9}, calls);
  EXPECT_EQ(calls->samples[0], 9);
}

TEST(Measure, ABatchIsChosenAlikeOnEveryRank) {
  tune::SharedValue<Calls> calls;
  measure_on_two_ranks({.seconds = 0, .batch = 0}, calls);
  EXPECT_EQ(calls->batch[0], calls->batch[1]);
  EXPECT_GE(calls->batch[0], 1);
  EXPECT_LE(calls->batch[0], 1000);
}

}  // namespace medley::bench

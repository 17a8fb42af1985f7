#include "tune/sample_clock.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tune/forked_ranks.hpp"
#include "tune/shared_value.hpp"

namespace medley::tune {
namespace {

using Counter = std::atomic<int>;

/// Runs `body(clock)` on every rank of a fresh clock after meet().
std::vector<int> failed_clocked_ranks(int ranks, const std::function<bool(SampleClock&)>& body) {
  SampleClock created = SampleClock::create(ranks);
  return failed_forked_ranks(ranks, [&](int rank) {
    if (rank == 0) {
      created.meet();
      return body(created);
    }
    SampleClock opened = SampleClock::open(created.name(), rank, ranks);
    opened.meet();
    return body(opened);
  });
}

void busy_us(int us) {
  const std::int64_t until = now_ns() + std::int64_t{us} * 1000;
  while (now_ns() < until) sched_yield();
}

}  // namespace

TEST(SampleClock, NobodyStartsBeforeAllHaveArrived) {
  constexpr int ranks = 4, samples = 200;
  SharedValue<Counter> arrived;
  const auto failed = failed_clocked_ranks(ranks, [&](SampleClock& clock) {
    bool good = true;
    for (int i = 1; i <= samples; ++i) {
      ++*arrived;
      clock.time([&] { good = good && *arrived >= i * ranks; });
    }
    return good;
  });
  EXPECT_EQ(failed, std::vector<int>{});
  EXPECT_EQ(*arrived, samples * ranks);
}

TEST(SampleClock, ASampleIsTheSlowestRanksTimeAndTheSameOnEveryRank) {
  constexpr int ranks = 3, samples = 20;
  SharedValue<std::array<std::array<Sample, samples>, ranks>> seen;
  const auto failed = failed_clocked_ranks(ranks, [&](SampleClock& clock) {
    for (std::size_t i = 0; i < samples; ++i) {
      const bool slowest = static_cast<int>(i % ranks) == clock.rank();  // each rank in turn
      (*seen)[static_cast<std::size_t>(clock.rank())][i] = clock.time([&] { busy_us(slowest ? 300 : 0); });
    }
    return true;
  });
  ASSERT_EQ(failed, std::vector<int>{});
  for (std::size_t i = 0; i < samples; ++i) {
    const Sample& first = (*seen)[0][i];
    EXPECT_GE(first.us, 300);
    EXPECT_GE(first.late_us, 0);
    for (const auto& rank : *seen) {
      EXPECT_EQ(rank[i].us, first.us);
      EXPECT_EQ(rank[i].late_us, first.late_us);
      EXPECT_EQ(rank[i].released_ns, first.released_ns);
    }
    if (i > 0) {
      EXPECT_GT(first.released_ns, (*seen)[0][i - 1].released_ns);
    }
  }
}

TEST(SampleClock, ABatchRunsBackToBackAndCountsPerOperation) {
  SharedValue<Counter> calls;
  const auto failed = failed_clocked_ranks(2, [&](SampleClock& clock) {
    const std::int64_t before = now_ns();
    const Sample sample = clock.time([&] { ++*calls, busy_us(100); }, 10);
    const double whole_us = static_cast<double>(now_ns() - before) / 1e3;
    return sample.us >= 100 && sample.us <= whole_us / 10;
  });
  EXPECT_EQ(failed, std::vector<int>{});
  EXPECT_EQ(*calls, 20);
}

TEST(SampleClock, AWaitingRankServesThoseStillInTheOperation) {
  SharedValue<Counter> served;
  const auto failed = failed_clocked_ranks(2, [&](SampleClock& clock) {
    if (clock.rank() == 0) clock.while_waiting([&] { ++*served; });
    // Rank 1 cannot finish unless rank 0, which finishes at once, is called while it waits.
    clock.time([&] {
      while (clock.rank() == 1 && *served == 0) sched_yield();
    });
    return true;
  });
  EXPECT_EQ(failed, std::vector<int>{});
}

TEST(SampleClock, MoreRanksThanCoresAreNoticed) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  const int ranks = CPU_COUNT(&cores) + 1;
  if (ranks > 128) GTEST_SKIP() << "would start " << ranks << " processes";
  EXPECT_EQ(failed_clocked_ranks(ranks, [](SampleClock& clock) { return clock.oversubscribed(); }), std::vector<int>{});
  EXPECT_EQ(failed_clocked_ranks(1, [](SampleClock& clock) { return !clock.oversubscribed(); }), std::vector<int>{});
}

TEST(SampleClock, LeavesNoNameBehind) {
  const auto gone = [](const std::string& name) {
    const int file = shm_open(name.c_str(), O_RDWR, 0600);
    if (file >= 0) close(file);
    return file < 0 && errno == ENOENT;
  };
  // Rank 0 unlinks the page when all have met; the first start tells the other rank.
  const auto failed = failed_clocked_ranks(2, [&](SampleClock& clock) {
    bool good = false;
    clock.time([&] { good = gone(clock.name()); });
    return good;
  });
  EXPECT_EQ(failed, std::vector<int>{});
  std::string never_met;
  {
    SampleClock clock = SampleClock::create(2);
    never_met = clock.name();
    EXPECT_FALSE(gone(never_met));
  }
  EXPECT_TRUE(gone(never_met));
}

TEST(SampleClock, AMissingRankIsNamedInsteadOfAwaitedForEver) {
  SampleClock clock = SampleClock::create(2);
  clock.deadline_seconds(0.05);
  try {
    clock.meet();
    FAIL() << "rank 1 does not exist";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("for rank 1 at the start"), std::string::npos) << error.what();
  }
}

TEST(SampleClock, RefusesRanksThatCannotBe) {
  EXPECT_THROW(SampleClock::create(0), std::invalid_argument);
  SampleClock clock = SampleClock::create(2);
  EXPECT_THROW(SampleClock::open(clock.name(), 2, 2), std::invalid_argument);
  EXPECT_THROW(SampleClock::open("/medley-clock-that-is-not-there", 1, 2), std::runtime_error);
}

}  // namespace medley::tune

// Automatic fusion: ranks that wait, test and conflict at different places still start the same operations together.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/ranks.hpp"

namespace medley {
namespace {

using namespace std::chrono_literals;

TEST(AutomaticFusion, RanksMayWaitAtDifferentPlaces) {
  constexpr int ranks = 3;
  test::run_threads(ranks, [](Context& context) {
    Comm comm = context.world().dup({.fuse = true});
    std::mt19937 own(static_cast<unsigned>(comm.rank())), same(99);
    const auto draw = [](std::mt19937& random, unsigned below) { return static_cast<unsigned>(random() % below); };
    for (int round = 0; round < 40; ++round) {
      std::vector<std::vector<std::int64_t>> tensors;
      std::vector<std::int64_t> expected;
      std::vector<Work> works;
      const unsigned count = 1 + draw(same, 60);
      for (unsigned t = 0; t < count; ++t) {
        tensors.emplace_back(draw(same, 8) == 0 ? 20'000 : draw(same, 200) + 1, 1);
        expected.push_back(1);
      }
      for (unsigned step = 0; step < 2 * count; ++step) {
        const unsigned t = draw(same, count);  // some more than once: the second waits for the first
        const unsigned kind = draw(same, 12);
        const Options options{.async = draw(own, 10) != 0};  // one rank may block in what another calls async
        works.push_back(comm.all_reduce(tensors[t], sum, options));
        expected[t] *= ranks;
        if (kind == 1) comm.barrier();
        if (draw(own, 5) == 0) works[draw(own, static_cast<unsigned>(works.size()))].wait();
        if (draw(own, 5) == 0) static_cast<void>(works.back().test());
      }
      for (Work& work : works) work.wait();
      for (unsigned t = 0; t < count; ++t) {
        ASSERT_EQ(tensors[t], std::vector<std::int64_t>(tensors[t].size(), expected[t]))
            << "round " << round << ", tensor " << t;
      }
    }
    comm.barrier();
  });
}

TEST(AutomaticFusion, AConflictOnOneRankIsNoConflictOnAnother) {
  test::run_threads(2, [](Context& context) {
    Comm comm = context.world().dup({.fuse = true});
    std::vector<float> a(4, 1), b(4, 5), c(4);
    for (int round = 0; round < 20; ++round) {
      a.assign(4, 1), b.assign(4, 1), c.assign(4, 0);
      // On rank 0 the second reads what the first writes; on rank 1 they share nothing.
      Work first = comm.all_reduce(a, sum, {.async = true});
      Work second = comm.all_reduce(comm.rank() == 0 ? a : b, c, sum, {.async = true});
      second.wait();
      first.wait();
      EXPECT_EQ(c[0], 3.0f);
    }
    comm.barrier();
  });
}

TEST(AutomaticFusion, CompletesWithoutAnybodyWaiting) {
  test::run_threads(
      2,
      [](Context& context) {
        Comm comm = context.world().dup({.fuse = true});
        std::vector<float> a(4, 1), b(4, 1);
        Work first = comm.all_reduce(a, sum, {.async = true}), second = comm.all_reduce(b, sum, {.async = true});
        while (!first.complete() || !second.complete())
          std::this_thread::yield();  // the progress thread's time decides
        EXPECT_EQ(a[0] + b[0], 4.0f);
        context.world().barrier();
      },
      [](ContextOptions& options) { options.progress_thread = UseThread::always; });
}

TEST(AutomaticFusion, AnAbortEndsWhatWasCollected) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world(), comm = world.dup({.fuse = true});
    std::vector<float> a(4, 1), b(4, 1);
    std::vector<Work> works;
    if (comm.rank() == 0) {  // the other rank never calls
      works.push_back(comm.all_reduce(a, sum, {.async = true}));
      works.push_back(comm.all_reduce(b, sum, {.async = true}));
      EXPECT_FALSE(works[0].wait_for(20ms));
    }
    world.barrier();
    if (comm.rank() == 1) comm.abort();
    for (Work& work : works) EXPECT_THROW(work.wait(), Error);
    world.barrier();
  });
}

std::atomic<int>& counter_of_keeps(const char* name) {
  void* const plugin = dlopen(KEEPING_BACKENDS "/libmedley_backend_keeps.so", RTLD_NOW);
  EXPECT_NE(plugin, nullptr) << dlerror();
  return *static_cast<std::atomic<int>*>(dlsym(plugin, name));
}

TEST(AutomaticFusion, TheMemoryOfAnAbandonedAgreementGoesToTheLibrary) {
  std::atomic<int>& started = counter_of_keeps("started_all_reduces");
  test::run_threads(
      2,
      [&](Context& context) {
        Comm world = context.world(), comm = world.dup({.rules = "all_reduce=keeps", .fuse = true});
        std::vector<float> a(4, 1);
        Work work = comm.all_reduce(a, sum, {.async = true});
        while (started < 2)
          context.progress();  // both ranks' agreements are with the library, which never completes them
        if (comm.rank() == 0) comm.abort();
        EXPECT_THROW(work.wait(), Error);
        world.barrier({.backend = "shm"});
      },
      [](ContextOptions& options) {
        options.backends = {"shm", "keeps"};
      });
  EXPECT_EQ(counter_of_keeps("abandoned_with_memory"), 2);
  EXPECT_EQ(counter_of_keeps("abandoned_without"), 0);
}

TEST(AutomaticFusion, ADeadlineNamesTheMissingRank) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world(), comm = world.dup({.fuse = true});
    std::vector<float> a(4, 1);
    if (comm.rank() == 0) {
      Work work = comm.all_reduce(a, sum, {.async = true, .deadline = 100ms});
      try {
        work.wait();
        ADD_FAILURE() << "rank 1 never called";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
        EXPECT_EQ(error.context().ranks, std::vector<int>{1}) << error.what();
      }
    }
    world.barrier();
  });
}

TEST(AutomaticFusion, AllRanksMustWantIt) {
  test::run_threads(2, [](Context& context) {
    Comm world = context.world();
    EXPECT_THROW(world.dup({.fuse = world.rank() == 0}), Error);
    world.barrier();
  });
}

}  // namespace
}  // namespace medley

// Routes over hierarchical backends on two hosts of two ranks. Needs permission to create namespaces (root); skipped
// otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <numeric>
#include <thread>

#include "base/random.hpp"
#include "harness/two_hosts.hpp"
#include "route/pair_name.hpp"

namespace medley {
namespace {

using test::places;
constexpr int ranks = test::ranks_on_hosts;

bool on_two_hosts(const test::Body& body) { return test::on_two_hosts({"shm", "gloo", "shm+gloo"}, body); }

const Options paired{.backend = "shm+gloo"};

void reductions(Comm& world, std::size_t count) {
  const int rank = world.rank();
  std::vector<std::int32_t> values(count), sums(count);
  std::iota(values.begin(), values.end(), rank);
  world.all_reduce(values, sums, sum, paired);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sums[i], ranks * static_cast<int>(i) + 6) << i << " of " << count;
  world.all_reduce(values, max, paired);  // in place
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<int>(i) + 3);
  std::vector<std::int32_t> whole(count * ranks), part(count);
  std::iota(whole.begin(), whole.end(), rank);
  world.reduce_scatter(whole, part, sum, paired);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(part[i], ranks * (rank * static_cast<int>(count) + static_cast<int>(i)) + 6);
}

void exchanges(Comm& world, std::size_t count) {
  const int rank = world.rank(), n = static_cast<int>(count);
  std::vector<std::int32_t> part(count), whole(count * ranks), given(count * ranks), taken(count * ranks);
  for (int i = 0; i < n; ++i) part[static_cast<std::size_t>(i)] = 1000 * rank + i;
  world.all_gather(part, whole, paired);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < n; ++i) ASSERT_EQ(whole[static_cast<std::size_t>(r * n + i)], 1000 * r + i);
    for (int i = 0; i < n; ++i) given[static_cast<std::size_t>(r * n + i)] = 10000 * rank + 1000 * r + i;
  }
  world.all_to_all(given, taken, paired);
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < n; ++i) ASSERT_EQ(taken[static_cast<std::size_t>(r * n + i)], 10000 * r + 1000 * rank + i);
  }
  std::vector<std::int32_t> other(given.size());
  // Some ranks work in place, and the others cannot know
  std::vector<std::int32_t>& met = rank % 2 == 0 ? given : other;
  world.all_to_all(given, met, paired);
  ASSERT_EQ(met, taken);
  for (int root = 0; root < ranks; ++root) {
    std::vector<std::int32_t> tensor(count, rank == root ? root + 7 : 0);
    world.broadcast(tensor, root, paired);
    for (const std::int32_t value : tensor) ASSERT_EQ(value, root + 7);
  }
}

/// Filled in over messages that stay inside a host or cross hosts.
void uneven(Comm& world, std::int64_t count) {
  const int rank = world.rank();
  std::vector<std::int64_t> of_rank(ranks), same(ranks, count * (rank + 1));
  std::iota(of_rank.begin(), of_rank.end(), 1);
  for (std::int64_t& n : of_rank) n *= count;
  const auto whole = static_cast<std::size_t>(10 * count);
  std::vector<std::int32_t> part(static_cast<std::size_t>(count * (rank + 1)), rank), in(whole), out(whole),
      back(part.size(), -1);
  const auto expect_parts = [&](const std::vector<std::int32_t>& all) {
    std::size_t at = 0;
    for (int r = 0; r < ranks; ++r) {
      for (std::int64_t i = 0; i < of_rank[static_cast<std::size_t>(r)]; ++i) ASSERT_EQ(all[at++], r);
    }
  };
  for (int root = 0; root < ranks; ++root) {
    std::vector<std::int32_t> all(rank == root ? whole : 0);
    world.gatherv(part, all, {of_rank}, root, paired);
    if (rank == root) expect_parts(all);
    world.scatterv(all, {of_rank}, back, root, paired);
    ASSERT_EQ(back, part);
  }
  std::size_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    for (std::int64_t i = 0; i < of_rank[static_cast<std::size_t>(r)]; ++i) in[at++] = 10 * rank + r;
  }
  std::vector<std::int32_t> taken(static_cast<std::size_t>(ranks * count * (rank + 1)));
  for (const char* algorithm : {"linear", "pairwise"}) {
    std::fill(taken.begin(), taken.end(), -1);
    world.all_to_allv(in, {of_rank}, taken, {same}, {.backend = "shm+gloo", .algorithm = algorithm});
    for (std::size_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i], 10 * static_cast<int>(i / part.size()) + rank);
  }
  world.all_gatherv(part, out, {of_rank}, paired);
  expect_parts(out);
}

TEST(Hierarchical, SendsEachPartOfUnevenOperationsToWhereItBelongs) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        for (const std::int64_t count : {1, 30, 20'000}) uneven(world, count);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST(Hierarchical, AContextThatListsNoBackendsMakesOnePairAndPrefersOthersToGloo) {
  if (!test::on_two_hosts({}, [](Context& context) {
        std::vector<std::string> open;
        for (const BackendInfo& one : context.backends()) {
          if (one.available) open.push_back(one.name);
        }
        ASSERT_EQ(open.front(), "shm");
        EXPECT_EQ(std::count_if(open.begin(), open.end(), route::is_pair), 1);
        EXPECT_EQ(open.back(), "shm+" + (open[1] == "nccl" ? open[2] : open[1]));
        const auto gloo = std::find(open.begin(), open.end(), "gloo");
        EXPECT_EQ(gloo, open.end() - 2) << "gloo is the last library, before the pair";
        Comm world = context.world();
        std::vector<std::int32_t> values(1000, context.rank());
        world.all_reduce(values, sum);
        EXPECT_EQ(values, std::vector<std::int32_t>(1000, 6));
        EXPECT_EQ(context.local_rank(), context.rank() % places);
        EXPECT_EQ(context.local_size(), places);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// Inside a host ranks have other numbers: a wait for one rank must not take another for it.
TEST(Hierarchical, WaitsForARankOfTheSecondHostAfterTheFirstHostHasLeft) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        world.barrier();
        if (context.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
        std::vector<std::int32_t> mine{context.rank()}, all(context.rank() == 2 ? ranks : 0);
        const std::vector<std::int64_t> one(ranks, 1);
        world.gatherv(mine, all, {one}, 2, paired);
        if (context.rank() == 2) {
          EXPECT_EQ(all, (std::vector<std::int32_t>{0, 1, 2, 3}));
        }
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST(Hierarchical, GivesWhatOneBackendGives) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        for (const std::size_t count : {0, 1, 3, 64, 10'007}) {
          reductions(world, count);
          exchanges(world, count);
        }
        world.barrier(paired);  // filled in
        std::vector<float> a(1000, 1), b(1000, 1);
        Work first = world.all_reduce(a, sum, {.backend = "shm+gloo", .async = true});
        Work second = world.all_reduce(b, sum, {.backend = "shm+gloo", .async = true});
        second.wait();
        first.wait();
        EXPECT_EQ(a[999] + b[0], 8);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// Collectives of all kinds and sizes that are pending together, natively and filled in, in one order on all ranks.
/// Each rank waits where it likes.
void many_at_once(Comm& world, std::uint64_t seed) {
  struct Pending {
    std::vector<std::int32_t> in, out, expected;
    Work work;
  };
  const int rank = world.rank(), operations = 150;
  core::Random common(seed), own(seed + 100 + static_cast<std::uint64_t>(rank));
  std::deque<Pending> all;
  for (int k = 0; k < operations; ++k) {
    constexpr std::size_t sizes[] = {1, 100, 5'000, 60'000};
    const std::size_t count = sizes[common.below(4)];
    const auto kind = common.below(5);
    Pending& one = all.emplace_back();
    Options options{.backend = "shm+gloo", .async = true};
    const auto parts = [&](const auto& value) {  // one part of each rank
      for (int r = 0; r < ranks; ++r) one.expected.insert(one.expected.end(), count, value(r));
    };
    if (kind == 0) {
      one.in.assign(count, rank + k), one.out.resize(count), one.expected.assign(count, ranks * k + 6);
      one.work = world.all_reduce(one.in, one.out, sum, options);
    } else if (kind == 1) {
      one.in.assign(count, 1000 * rank + k), one.out.resize(count * ranks);
      parts([&](int r) { return 1000 * r + k; });
      one.work = world.all_gather(one.in, one.out, options);
    } else if (kind == 2) {
      one.in.assign(count * ranks, rank + k), one.out.resize(count), one.expected.assign(count, ranks * k + 6);
      one.work = world.reduce_scatter(one.in, one.out, sum, options);
    } else if (kind == 3) {
      one.out.assign(count, rank == k % ranks ? k : -1), one.expected.assign(count, k);
      one.work = world.broadcast(one.out, k % ranks, options);
    } else {
      for (int r = 0; r < ranks; ++r) one.in.insert(one.in.end(), count, 1000 * rank + 10 * r + k);
      one.out.resize(count * ranks);
      parts([&](int r) { return 1000 * r + 10 * rank + k; });
      if (common.below(2) == 0) options.algorithm = "linear";
      one.work = world.all_to_all(one.in, one.out, options);
    }
    if (own.below(10) == 0) all[own.below(all.size())].work.wait();
  }
  for (Pending& one : all) {
    one.work.wait();
    ASSERT_EQ(one.out, one.expected);
  }
}

TEST(Hierarchical, CollectivesThatArePendingTogetherKeepApart) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        for (const std::uint64_t seed : {1, 2, 3}) many_at_once(world, seed);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// Tensors of several segments and of an odd length, pending together with small ones that follow them.
TEST(Hierarchical, SumsAndBroadcastsLargeTensorsInSegments) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        const int rank = world.rank();
        const Options later{.backend = "shm+gloo", .async = true};
        std::vector<std::int64_t> sums(700'001), copies(430'007, rank == 3 ? 5 : 0), few(3, rank);
        std::iota(sums.begin(), sums.end(), rank);
        Work first = world.all_reduce(sums, sum, later), second = world.broadcast(copies, 3, later),
             third = world.all_reduce(few, max, later);
        third.wait(), second.wait(), first.wait();
        for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], ranks * static_cast<std::int64_t>(i) + 6);
        for (const std::int64_t value : copies) ASSERT_EQ(value, 5);
        EXPECT_EQ(few, (std::vector<std::int64_t>{3, 3, 3}));
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// The error of a call, which must have one.
template <class Called>
Error error_of(Called&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::invalid, "none");
}

/// 2, 3 and 4 MiB have segments of one size on two hosts, so their first segments alone would fit each other.
TEST(Hierarchical, OtherCountsAreAnErrorOfTheirHostThoughSegmentsAreAsLarge) {
  if (!on_two_hosts([](Context& context) {
        constexpr std::size_t mib = (1 << 20) / sizeof(float);
        Comm world = context.world();
        for (const std::size_t other : {1, 2, 3}) {
          Comm comm = world.dup();
          const bool differs = comm.rank() == 3;
          std::vector<float> values((differs ? other : 4) * mib);
          const Error error = error_of([&] {
            // As many bytes
            for (std::size_t sent = 0; sent < 4; sent += differs ? other : 4) comm.all_reduce(values, sum, paired);
          });
          EXPECT_EQ(error.kind(), ErrorKind::mismatch) << error.what();
          for (const int rank : error.context().ranks)
            EXPECT_GE(rank, comm.rank() < places ? 0 : places) << error.what();
          world.barrier();  // before any rank leaves the failed comm, which would be news too
        }
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// The ranks of a host agree, so only the phase between hosts can notice. 300,000 and 700,000 floats have 2 and 3
/// segments, and each segment of the second host is larger than the first host's.
TEST(Hierarchical, OtherCountsOfAWholeHostAreAnError) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        for (const bool broadcasts : {true, false}) {
          Comm comm = world.dup();
          std::vector<float> values(comm.rank() < places ? 300'000 : 700'000);
          const Error error = error_of([&] {
            for (int i = 0; i < 3; ++i)
              broadcasts ? comm.broadcast(values, 0, paired) : comm.all_reduce(values, sum, paired);
          });
          EXPECT_EQ(error.kind(), ErrorKind::mismatch) << error.what();
          world.barrier();
        }
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// Rank 3 has called everything and makes no progress, so only what the collectives themselves await can name a rank.
TEST(Hierarchical, ACollectiveThatWaitsForItsTurnNamesRanksThatItAwaits) {
  test::Shared<std::atomic<int>> failed;
  if (!on_two_hosts([&failed](Context& context) {
        Comm comm = context.world().dup();
        std::vector<std::vector<float>> values(20, std::vector<float>(100'000));
        std::vector<Work> works;
        for (auto& tensor : values) {
          const auto limit = std::chrono::milliseconds(&tensor == &values.back() ? 700 : 20'000);
          works.push_back(comm.all_reduce(tensor, sum, {.backend = "shm+gloo", .async = true, .deadline = limit}));
        }
        while (comm.rank() == 3 && *failed < 3) std::this_thread::yield();
        const Error error = error_of([&] { works.back().wait(); });
        ++*failed;
        EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
        EXPECT_FALSE(error.context().ranks.empty()) << error.what();
        // As in a pipeline
        EXPECT_NE(std::string(error.what()).find("all_reduce #2 over shm+gloo running"), std::string::npos)
            << error.what();
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

/// Segments are inside the host, between hosts and waiting for their turn when the deadline passes; then their memory
/// is the program's again.
TEST(Hierarchical, EndsPendingSegmentsWithAnErrorWhenARankStaysAway) {
  if (!on_two_hosts([](Context& context) {
        for (const int absent : {3, 0}) {
          Comm comm = context.world().dup();
          if (comm.rank() == absent) {
            const Error error = error_of([&] { comm.barrier({.backend = "gloo"}); });  // which nobody joins
            EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
            continue;
          }
          const auto limit = std::chrono::milliseconds(700);
          const Options later{.backend = "shm+gloo", .async = true, .deadline = limit};
          std::vector<Work> works;
          {
            std::vector<float> sums(3'000'000, 1), copies(3'000'000), given(1'000'000), taken(1'000'000),
                parts(250'000);
            works.push_back(comm.all_reduce(sums, sum, later));
            works.push_back(comm.broadcast(copies, 1, later));
            works.push_back(comm.all_to_all(given, taken, later));
            works.push_back(comm.all_to_all(taken, taken, later));  // in place
            works.push_back(comm.reduce_scatter(copies, std::span(sums).first(750'000), sum, later));
            for (int i = 0; i < 20; ++i) works.push_back(comm.all_reduce(parts, max, later));
            for (Work& work : works) {
              const Error error = error_of([&] { work.wait(); });
              EXPECT_EQ(error.kind(), ErrorKind::timeout) << error.what();
            }
          }
          const Error error = error_of([&] { comm.barrier(); });
          EXPECT_NE(std::string(error.what()).find("failed earlier"), std::string::npos) << error.what();
        }
        std::vector<float> values(2'000'000, 1);
        context.world().all_reduce(values, sum, paired);
        EXPECT_EQ(values.back(), ranks);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

TEST(Hierarchical, IsNotOfferedWhereItMakesNoSense) {
  if (!on_two_hosts([](Context& context) {
        Comm pair = context.world().split(context.rank() / places, context.rank());
        std::vector<float> values(4, 1);
        EXPECT_THROW(pair.all_reduce(values, sum, paired), Error);  // one host
        pair.all_reduce(values, sum);
        EXPECT_EQ(values[0], 2);
      })) {
    GTEST_SKIP() << test::no_hosts;
  }
}

}  // namespace
}  // namespace medley

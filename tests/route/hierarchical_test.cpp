// Routes over hierarchical backends on two hosts of two ranks: mount namespaces with their own /dev/shm count as hosts.
// Needs permission to create namespaces (root); skipped otherwise.
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mount.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "harness/ranks.hpp"

namespace medley {
namespace {

constexpr int hosts = 2, places = 2, ranks = hosts * places, may_not = 77;

bool become_host() {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") == 0;
}

int run_rank(int rank, const test::ForkedStore& store, const test::Body& body) {
  try {
    ContextOptions options = test::options_of(rank, ranks, store.connect(rank, ranks));
    options.backends = {"shm", "gloo", "shm+gloo"};
    Context context(options);
    body(context);
    return ::testing::Test::HasFailure() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    return 2;
  }
}

/// gloo does not use loopback between hosts, and these share a network: any other interface works.
bool name_interface() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  bool found = false;
  for (const ifaddrs* one = all; one && !found; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET || !(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) continue;
    found = setenv("MEDLEY_GLOO_INTERFACE", one->ifa_name, 1) == 0;
  }
  freeifaddrs(all);
  return found;
}

/// False where this user may not create namespaces, or there is no network.
bool on_two_hosts(const test::Body& body) {
  if (!name_interface()) return false;
  test::ForkedStore store;
  std::fflush(nullptr);
  std::vector<pid_t> made;
  for (int host = 0; host < hosts; ++host) {
    const pid_t keeper = fork();
    if (keeper > 0) {
      made.push_back(keeper);
      continue;
    }
    if (!become_host()) _exit(may_not);
    int worst = 0;
    std::vector<pid_t> children;
    for (int place = 0; place < places; ++place) {
      const pid_t child = fork();
      if (child == 0) {
        const int status = run_rank(host * places + place, store, body);
        std::fflush(nullptr);
        _exit(status);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    _exit(worst);
  }
  store.open();
  bool may = true;
  for (const pid_t keeper : made) {
    int status = 0;
    waitpid(keeper, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == may_not) {
      may = false;
    } else {
      EXPECT_EQ(status, 0);
    }
  }
  return may;
}

const Options paired{.backend = "shm+gloo"};

void reductions(Comm& world, std::size_t count) {
  const int rank = world.rank();
  std::vector<std::int32_t> values(count), sums(count);
  std::iota(values.begin(), values.end(), rank);
  world.all_reduce(values, sums, sum, paired);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sums[i], ranks * static_cast<int>(i) + 6) << i << " of " << count;
  world.all_reduce(values, max, paired);   // in place
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<int>(i) + 3);
  std::vector<std::int32_t> whole(count * ranks), part(count);
  std::iota(whole.begin(), whole.end(), rank);
  world.reduce_scatter(whole, part, sum, paired);
  for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(part[i], ranks * (rank * static_cast<int>(count) + static_cast<int>(i)) + 6);
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
  std::vector<std::int32_t> part(static_cast<std::size_t>(count * (rank + 1)), rank), in(whole), out(whole), back(part.size(), -1);
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
    GTEST_SKIP() << "this user may not make namespaces, or there is no network but loopback";
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
    GTEST_SKIP() << "this user may not make namespaces, or there is no network but loopback";
  }
}

TEST(Hierarchical, GivesWhatOneBackendGives) {
  if (!on_two_hosts([](Context& context) {
        Comm world = context.world();
        for (const std::size_t count : {0, 1, 3, 64, 10'007}) {
          reductions(world, count);
          exchanges(world, count);
        }
        world.barrier(paired);   // filled in
        std::vector<float> a(1000, 1), b(1000, 1);
        Work first = world.all_reduce(a, sum, {.backend = "shm+gloo", .async = true});
        Work second = world.all_reduce(b, sum, {.backend = "shm+gloo", .async = true});
        second.wait();
        first.wait();
        EXPECT_EQ(a[999] + b[0], 8);
      })) {
    GTEST_SKIP() << "this user may not make namespaces, or there is no network but loopback";
  }
}

TEST(Hierarchical, IsNotOfferedWhereItMakesNoSense) {
  if (!on_two_hosts([](Context& context) {
        Comm pair = context.world().split(context.rank() / places, context.rank());
        std::vector<float> values(4, 1);
        EXPECT_THROW(pair.all_reduce(values, sum, paired), Error);   // one host
        pair.all_reduce(values, sum);
        EXPECT_EQ(values[0], 2);
      })) {
    GTEST_SKIP() << "this user may not make namespaces, or there is no network but loopback";
  }
}

}  // namespace
}  // namespace medley

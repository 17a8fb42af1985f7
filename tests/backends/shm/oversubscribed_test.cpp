// Oversubscribed cores, many ranks, many comms.
#include <sched.h>

#include <fstream>
#include <numeric>
#include <string>

#include "harness/ranks.hpp"

namespace medley::test {
namespace {

void use_two_cores() {
  cpu_set_t all, two;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&two);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &two);
  }
  sched_setaffinity(0, sizeof two, &two);
}

// A rank that kept its core while it waits would cost the others a time slice (milliseconds) each time: minutes in all.
TEST(Crowd, EightRanksOnTwoCores) {
  run_processes(
      8,
      [](Context& context) {
        Comm world = context.world();
        std::vector<std::int64_t> value(8);
        for (int i = 0; i < 3000; ++i) {
          std::fill(value.begin(), value.end(), i);
          world.all_reduce(value, sum);
          ASSERT_EQ(value.back(), 8 * i);
          const int next = (world.rank() + 1) % 8, before = (world.rank() + 7) % 8;
          std::int64_t out[1] = {i}, in[1] = {-1};
          world.sendrecv(out, next, in, before);
          ASSERT_EQ(in[0], i);
        }
      },
      [](ContextOptions&) { use_two_cores(); });
}

/// Shared memory that this process has touched, in KiB.
long touched() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("RssShmem:")) return std::stol(line.substr(9));
  }
  return 0;
}

// Four slots of 256 KiB: a comm of small collectives does not populate what it does not need, since that takes longer
// than all else in a split. A large collective populates it.
TEST(Crowd, CommsOfSmallCollectivesStaySmall) {
  run_processes(
      6,
      [](Context& context) {
        Comm comm = context.world().dup();
        std::vector<std::int64_t> value(64, 1);
        const long before = touched();
        for (int i = 0; i < 20; ++i) comm.all_reduce(value, max);
        EXPECT_LT(touched() - before, 512);
        std::vector<std::int64_t> all(value.size() * 6);
        comm.all_gather(value, all);
        EXPECT_EQ(all, std::vector<std::int64_t>(all.size(), 1));
        std::vector<std::int64_t> large(16 << 10, 1);
        for (int i = 0; i < 20; ++i) comm.all_reduce(large, max);
        EXPECT_EQ(large.back(), 1);
        EXPECT_GE(touched() - before, 1024);
      },
      [](ContextOptions&) { use_two_cores(); });
}

template <typename T>
std::vector<T> counting(std::size_t count, T first) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// Every operation once with `c` elements per rank, with values that identify their rank and position.
void every_operation(Comm& comm, std::size_t c) {
  const int n = comm.size(), me = comm.rank(), root = n - 1;
  const auto ranks = static_cast<std::size_t>(n);
  const std::int64_t base = 1'000'000 * me;
  const auto mine = counting<std::int64_t>(c, base), whole = counting<std::int64_t>(c * ranks, base);
  const auto from = [&](int r, std::size_t i) {
    return 1'000'000 * static_cast<std::int64_t>(r) + static_cast<std::int64_t>(i);
  };
  const std::int64_t bases = 1'000'000 * static_cast<std::int64_t>(n) * (n - 1) / 2;
  std::vector<std::int64_t> out(c), all(c * ranks), counts(ranks, static_cast<std::int64_t>(c));

  out = me == root ? mine : std::vector<std::int64_t>(c, -1);
  comm.broadcast(out, root);
  EXPECT_EQ(out, counting(c, from(root, 0)));
  comm.all_reduce(mine, out, sum);
  for (std::size_t i = 0; i < c; ++i) ASSERT_EQ(out[i], bases + n * static_cast<std::int64_t>(i));
  comm.reduce(mine, out, sum, root);
  if (me == root) {
    for (std::size_t i = 0; i < c; ++i) ASSERT_EQ(out[i], bases + n * static_cast<std::int64_t>(i));
  }
  const auto expect_gathered = [&] {
    for (int r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < c; ++i) ASSERT_EQ(all[static_cast<std::size_t>(r) * c + i], from(r, i));
    }
    std::fill(all.begin(), all.end(), -1);
  };
  comm.all_gather(mine, all);
  expect_gathered();
  comm.all_gatherv(mine, all, {counts});
  expect_gathered();
  comm.gather(mine, all, root);
  if (me == root) expect_gathered();
  comm.gatherv(mine, all, {counts}, root);
  if (me == root) expect_gathered();
  const auto expect_part = [&] {
    for (std::size_t i = 0; i < c; ++i) ASSERT_EQ(out[i], from(root, static_cast<std::size_t>(me) * c + i));
    std::fill(out.begin(), out.end(), -1);
  };
  comm.scatter(whole, out, root);
  expect_part();
  comm.scatterv(whole, {counts}, out, root);
  expect_part();
  const auto expect_reduced_part = [&] {
    for (std::size_t i = 0; i < c; ++i) {
      ASSERT_EQ(out[i], bases + n * static_cast<std::int64_t>(static_cast<std::size_t>(me) * c + i));
    }
    std::fill(out.begin(), out.end(), -1);
  };
  comm.reduce_scatter(whole, out, sum);
  expect_reduced_part();
  comm.reduce_scatterv(whole, {counts}, out, sum);
  expect_reduced_part();
  const auto expect_exchanged = [&] {
    for (int r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < c; ++i) {
        ASSERT_EQ(all[static_cast<std::size_t>(r) * c + i], from(r, static_cast<std::size_t>(me) * c + i));
      }
    }
    std::fill(all.begin(), all.end(), -1);
  };
  comm.all_to_all(whole, all);
  expect_exchanged();
  comm.all_to_allv(whole, {counts}, all, {counts});
  expect_exchanged();
  comm.barrier();
  comm.sendrecv(mine, (me + 1) % n, out, (me + n - 1) % n);
  EXPECT_EQ(out, counting(c, from((me + n - 1) % n, 0)));
}

TEST(Crowd, ThreeRanksDoEveryOperation) {
  run_processes(3, [](Context& context) {
    Comm world = context.world();
    for (std::size_t count : {1u, 2u, 300u, 50'000u}) every_operation(world, count);
  });
}

TEST(Crowd, SixtyFourRanksDoEveryOperation) {
  run_processes(64, [](Context& context) {
    Comm world = context.world();
    for (std::size_t count : {1u, 3000u}) every_operation(world, count);
  });
}

TEST(Crowd, TwoHundredComms) {
  run_processes(4, [](Context& context) {
    Comm world = context.world();
    std::vector<Comm> comms;
    for (int i = 0; i < 200; ++i) comms.push_back(i % 2 == 0 ? world.dup() : world.split(world.rank() / 2));
    std::vector<std::vector<float>> values(comms.size());
    std::vector<Work> works;
    for (std::size_t i = 0; i < comms.size(); ++i) {
      values[i].assign(i * 10 + 1, 1.0f);
      works.push_back(comms[i].all_reduce(values[i], sum, {.async = true}));
    }
    for (Work& work : works) work.wait();
    for (std::size_t i = 0; i < comms.size(); ++i) {
      ASSERT_EQ(values[i].back(), static_cast<float>(comms[i].size())) << "comm " << comms[i].name();
    }
    for (Comm& comm : comms) comm.barrier();
  });
}

}  // namespace
}  // namespace medley::test

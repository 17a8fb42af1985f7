// Routes that change in a running job: ranks that measure different times take the same routes throughout, as the
// record shows, and results stay right.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <medley/scope.hpp>
#include <mutex>
#include <numeric>

#include "harness/ranks.hpp"
#include "harness/traced.hpp"
#include "route/tables.hpp"
#include "trace/trace.hpp"

namespace medley {
namespace {

using route::cell;
using route::timing;
using ::testing::HasSubstr;

constexpr int ranks = 3;

/// The delay of a test backend's messages, in microseconds.
std::atomic<int>& delay_of(const std::string& backend) {
  void* const plugin = dlopen(fmt::format("{}/libmedley_backend_{}.so", DELAYING_BACKENDS, backend).c_str(), RTLD_NOW);
  EXPECT_NE(plugin, nullptr) << dlerror();
  return *static_cast<std::atomic<int>*>(dlsym(plugin, "delay_us"));
}

class Online : public test::Traced {
 protected:
  void SetUp() override {
    Traced::SetUp();
    path_ = folder_.native() + ".json";
  }
  void TearDown() override {
    delay_of("slow_a") = 0;
    delay_of("slow_b") = 0;
    unsetenv("MEDLEY_ONLINE");
    std::filesystem::remove(path_);
    Traced::TearDown();
  }
  /// Times of milliseconds make short windows: a window's operations take 20 ms by the table.
  void run(const test::Body& body, bool online = true) {
    route::Table table;
    table.machine = route::this_machine();
    for (const Op op : {Op::all_reduce, Op::all_gather, Op::broadcast, Op::reduce, Op::all_to_all, Op::gather,
                        Op::scatter, Op::reduce_scatter}) {
      table.put(
          cell(op, {1, ranks}, 64, {timing("slow_a", "native", 5000, 0.01), timing("slow_b", "native", 6000, 0.01)}));
      table.put(cell(op, {1, ranks}, 1 << 20,
                     {timing("slow_a", "native", 5000, 0.01), timing("slow_b", "native", 6000, 0.01),
                      timing("shm", "native", 7000, 0.01)}));
    }
    table.save(path_);
    test::run_threads(ranks, body, [&](ContextOptions& options) {
      options.backends = {"shm", "slow_a", "slow_b"};
      options.table = path_;
      options.online = online;
    });
  }
  /// Sequence number and backend of each collective.
  std::vector<std::string> taken(int rank) {
    const trace::Trace trace = trace::open_trace(folder_.native());
    std::vector<std::string> routes;
    trace.rank(rank).for_each([&](const trace::Event& event) {
      routes.push_back(fmt::format("{} {} {} {} {}", trace.groups[event.group].name, event.sequence, name(event.op),
                                   trace.names[event.backend], trace.names[event.algorithm]));
    });
    return routes;
  }
  void expect_same_routes() {
    const std::vector<std::string> first = taken(0);
    EXPECT_FALSE(first.empty());
    for (int rank = 1; rank < ranks; ++rank) EXPECT_EQ(taken(rank), first) << "on rank " << rank;
  }
  std::string path_;
};

std::string text(const RouteDecision& decision) {
  return fmt::format("{} {} {}-{} #{} {}: {} {} because {}", decision.comm, name(decision.op), decision.from_bytes,
                     decision.to_bytes, decision.sequence, decision.changed, decision.from, decision.to,
                     decision.reason);
}

/// Of a program whose only comm with online routes is the world, and that calls one operation of one size.
std::string in_use(const Context& context) {
  std::string backend = "slow_a";  // the table's
  for (const RouteDecision& one : context.route_decisions()) {
    if (one.changed) backend = one.to;
  }
  return backend;
}

TEST_F(Online, all_ranks_switch_with_the_same_operation_when_a_route_becomes_slow_and_back) {
  std::atomic<int>&a = delay_of("slow_a"), &b = delay_of("slow_b");
  std::mutex mutex;
  std::vector<std::vector<std::string>> decided(ranks);
  run([&](Context& context) {
    Comm world = context.world();
    int step = 0;
    const auto sum_all = [&] {
      std::vector<float> in(16, static_cast<float>(++step + context.rank())), out(16);
      world.all_reduce(in, out, sum);
      ASSERT_EQ(out, std::vector<float>(16, static_cast<float>(ranks * step + ranks * (ranks - 1) / 2)));
    };
    // Each rank asks at the same places; where the answers differed, the next operation would hang.
    for (int i = 0; i < 40; ++i) sum_all();
    world.barrier();
    // Two routes are fast at any time, shm among them; timing decides which of them is taken.
    if (context.rank() == 0) a = 1000;
    for (int i = 0; i < 20000 && in_use(context) == "slow_a"; ++i) sum_all();
    EXPECT_NE(in_use(context), "slow_a");
    world.barrier();
    if (context.rank() == 0) a = 0, b = 1000;
    for (int i = 0; i < 20000 && in_use(context) == "slow_b"; ++i) sum_all();
    EXPECT_NE(in_use(context), "slow_b");
    for (int i = 0; i < 20; ++i) sum_all();
    const std::lock_guard lock(mutex);
    for (const RouteDecision& decision : context.route_decisions())
      decided[static_cast<std::size_t>(context.rank())].push_back(text(decision));
  });
  EXPECT_FALSE(decided[0].empty());
  EXPECT_EQ(decided[1], decided[0]);
  EXPECT_EQ(decided[2], decided[0]);
  EXPECT_THAT(decided[0], ::testing::Contains(HasSubstr("measurements")));
  expect_same_routes();
  std::vector<std::string> recorded;
  for (const RouteDecision& decision : trace::open_trace(folder_.native()).decisions)
    recorded.push_back(text(decision));
  EXPECT_EQ(recorded, decided[0]);
}

TEST_F(Online, changes_nothing_unless_it_is_asked_for) {
  delay_of("slow_a") = 200;
  run(
      [](Context& context) {
        Comm world = context.world();
        std::vector<std::int32_t> value(16, 1);
        for (int i = 0; i < 100; ++i) world.all_reduce(value, max);
        EXPECT_TRUE(context.route_decisions().empty());
      },
      false);
  for (const std::string& route : taken(0)) EXPECT_THAT(route, HasSubstr("slow_a"));
}

/// Short windows whose routes the agreed times pick at random, with async operations in between that wait for them.
TEST_F(Online, shuffled_routes_are_the_same_on_all_ranks_and_results_right) {
  setenv("MEDLEY_ONLINE", "shuffle", 1);
  delay_of("slow_b") = 20;
  run([](Context& context) {
    Comm world = context.world(), other = world.dup(), exact = world.dup({.exact = true});
    const int me = context.rank();
    for (int round = 0; round < 40; ++round) {
      std::vector<std::vector<std::int32_t>> sums, gathered;
      std::vector<Work> works;
      std::vector<std::int32_t> own(8, round * 10 + me), from_root(500000, me == round % ranks ? round : -1);
      for (int i = 0; i < 12; ++i) {
        sums.emplace_back(i % 3 == 0 ? 300000 : 16, i + me);
        gathered.emplace_back(8 * ranks);
      }
      std::vector<Buffer> list;
      std::vector<std::vector<std::int32_t>> listed(5, std::vector<std::int32_t>(4, round));
      for (auto& one : listed) list.emplace_back(one);
      for (std::size_t i = 0; i < sums.size(); ++i) {
        Comm& comm = i % 4 == 3 ? other : i % 4 == 2 ? exact : world;
        works.push_back(comm.all_reduce(sums[i], sum, {.async = true}));
        works.push_back(comm.all_gather(own, gathered[i], {.async = true}));
        if (i % 5 == 0) works.push_back(world.barrier({.backend = "shm", .async = true}));
      }
      works.push_back(world.broadcast(from_root, round % ranks, {.async = true}));
      works.push_back(other.all_reduce(list, sum, {.async = true}));
      std::vector<std::int32_t> fixed(4, me);
      other.all_reduce(fixed, max, {.deterministic = true});
      EXPECT_EQ(fixed, std::vector<std::int32_t>(4, ranks - 1));
      for (Work& work : works) work.wait();
      for (std::size_t i = 0; i < sums.size(); ++i) {
        EXPECT_EQ(sums[i],
                  std::vector<std::int32_t>(sums[i].size(), ranks * static_cast<int>(i) + ranks * (ranks - 1) / 2));
        std::vector<std::int32_t> expected;
        for (int r = 0; r < ranks; ++r) expected.insert(expected.end(), 8, round * 10 + r);
        EXPECT_EQ(gathered[i], expected);
      }
      EXPECT_EQ(from_root, std::vector<std::int32_t>(from_root.size(), round));
      for (const auto& one : listed) EXPECT_EQ(one, std::vector<std::int32_t>(4, ranks * round));
    }
  });
  expect_same_routes();
  const std::vector<std::string> routes = taken(0);
  EXPECT_THAT(routes, ::testing::Contains(HasSubstr("all_reduce slow_b")));
  EXPECT_THAT(routes, ::testing::Contains(HasSubstr("all_reduce slow_a")));
  EXPECT_THAT(routes, ::testing::Contains(HasSubstr("all_reduce shm")));
}

TEST_F(Online, operations_that_name_a_route_keep_it) {
  setenv("MEDLEY_ONLINE", "shuffle", 1);
  run([](Context& context) {
    Comm world = context.world();
    std::vector<std::int32_t> value(16, 1);
    for (int i = 0; i < 60; ++i) {
      world.all_reduce(value, max);
      world.all_gather(std::vector<std::int32_t>{1}, value = std::vector<std::int32_t>(ranks), {.backend = "slow_b"});
      world.broadcast(value, 0, {.algorithm = "binomial"});
      value.resize(16, 1);
    }
  });
  expect_same_routes();
  for (const std::string& route : taken(0)) {
    EXPECT_TRUE(route.find("all_gather") == std::string::npos || route.find("slow_b") != std::string::npos) << route;
    EXPECT_TRUE(route.find("broadcast") == std::string::npos || route.find("slow_a binomial") != std::string::npos)
        << route;
  }
}

TEST_F(Online, a_value_that_means_nothing_is_refused) {
  setenv("MEDLEY_ONLINE", "yes", 1);
  try {
    Context context;
    FAIL() << "it was accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("MEDLEY_ONLINE=yes"));
  }
}

}  // namespace
}  // namespace medley

// A comm's routes by rules, table rows and the built-in order; and ranks must have the same table.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <mutex>

#include "engine/scheduling.hpp"
#include "harness/ranks.hpp"
#include "route/tables.hpp"

namespace medley {
namespace {

using core::LaneState;
using core::RouteReason;
using core::Routing;
using route::cell;
using route::timing;
using ::testing::HasSubstr;

struct FakeBackend final : Backend {
  explicit FakeBackend(std::string is, Memory has) : name_(std::move(is)), memory_(has) {}
  std::string_view name() const override { return name_; }
  std::string version() const override { return "1"; }
  bool has_memory(Memory memory) const override { return memory == memory_; }
  bool native(Op, DType, ReduceOp, Memory) const override { return true; }
  std::string refuses(const std::vector<int>&) const override { return {}; }
  std::unique_ptr<Lane> connect(const CommParams&) override { return nullptr; }
  std::string name_;
  Memory memory_;
};

/// A lane that carries nothing.
std::unique_ptr<LaneState> make_lane() {
  auto lane = std::make_unique<LaneState>();
  auto filled = std::make_unique<algorithms::FilledLane>(std::make_unique<core::test::IdleLane>(true, false),
                                                         core::Capabilities(), "idle", 0, 2);
  lane->filled = filled.get();
  lane->lane = std::move(filled);
  return lane;
}

class RoutingOfAComm : public ::testing::Test {
 protected:
  RoutingOfAComm() {
    for (FakeBackend* backend : {&mpi, &shm, &ucx, &nccl}) {
      lanes.push_back(make_lane());
      lanes.back()->backend = backend;
      lanes.back()->name = backend->name_;
      lanes.back()->host = backend->has_memory(Memory::host);
      lanes.back()->cuda = backend->has_memory(Memory::cuda);
      lanes.back()->default_for_host = backend == &shm;
      lanes.back()->default_for_cuda = backend == &nccl;
    }
  }
  std::string taken(const Routing& routing, Op op, std::int64_t count, Memory memory = Memory::host) const {
    Call call;
    call.op = op;
    call.dtype = DType::u8;
    call.memory = memory;
    call.in_count = call.out_count = count;
    const core::Route* route = routing.find(call, 4);
    if (!route) return "none";
    const char* reasons[] = {"named", "rule", "table", "fallback"};
    return fmt::format("{}/{} {}", route->lane->name, route->algorithm, reasons[static_cast<int>(route->reason)]);
  }
  FakeBackend mpi{"mpi", Memory::host}, shm{"shm", Memory::host}, ucx{"ucx", Memory::host}, nccl{"nccl", Memory::cuda};
  std::vector<std::unique_ptr<LaneState>> lanes;
  Rules none;
};

TEST_F(RoutingOfAComm, RulesComeBeforeRowsAndRowsBeforeTheBuiltInOrder) {
  route::Table table;
  table.put(cell(Op::all_gather, {1, 4}, 64, {timing("mpi", "native", 1), timing("ucx", "ring", 3)}));
  table.put(cell(Op::all_gather, {1, 4}, 4096, {timing("mpi", "native", 9), timing("ucx", "ring", 3)}));
  const Rules rules = Rules::parse("all_gather:100-200=shm");
  const Routing routing({rules, none, &table, {1, 4}}, lanes);
  EXPECT_EQ(taken(routing, Op::all_gather, 64), "mpi/ table");
  EXPECT_EQ(taken(routing, Op::all_gather, 150), "shm/ rule");
  EXPECT_EQ(taken(routing, Op::all_gather, 4096), "ucx/ring table");
  EXPECT_EQ(taken(routing, Op::broadcast, 64), "shm/ fallback");
  EXPECT_EQ(taken(routing, Op::broadcast, 64, Memory::cuda), "nccl/ fallback");
  EXPECT_FALSE(routing.fallback_shape());
}

// Where no mix was faster than a library, auto costs what naming that library does: one entry for all sizes, the
// library's own algorithm, and no size to agree on.
TEST_F(RoutingOfAComm, ATableThatFellBackToALibraryIsThatLibrary) {
  route::Table table = route::tuned_table("mpi");
  for (const bool exact : {false, true}) {
    for (const route::Shape shape : {route::Shape{1, 2}, route::Shape{1, 4}}) {
      const Routing routing({none, none, &table, shape, exact}, lanes);
      for (int i = 0; i < op_count; ++i) {
        const Op op = static_cast<Op>(i);
        for (const std::int64_t count : {0, 1000, 1 << 20})
          EXPECT_EQ(taken(routing, op, count), "mpi/ table") << name(op);
        Call call;
        call.op = op;
        int routes = 0;
        routing.each_route(call, [&](const core::Route&) { ++routes; });
        EXPECT_EQ(routes, 1) << name(op);
        EXPECT_FALSE(routing.by_size(op, Memory::host)) << name(op);
      }
      EXPECT_FALSE(routing.splits_messages(Memory::host));
    }
  }
}

TEST_F(RoutingOfAComm, WhatTheCommCannotTakeIsPassedOver) {
  route::Table table;
  table.put(cell(Op::all_gather, {1, 8}, 64,
                 {timing("gloo", "native", 1), timing("mpi", "spiral", 2), timing("ucx", "bruck", 3),
                  timing("mpi", "native", 9)}));
  const Routing routing({none, none, &table, {1, 4}}, lanes);
  EXPECT_EQ(taken(routing, Op::all_gather, 64), "ucx/bruck table");
  EXPECT_EQ(routing.fallback_shape(), (route::Shape{1, 8}));
}

TEST_F(RoutingOfAComm, WithoutSharedMemoryTheFirstBackendServes) {
  lanes.erase(lanes.begin() + 1);
  const Routing routing({none, none, nullptr, {2, 2}}, lanes);
  EXPECT_EQ(taken(routing, Op::all_reduce, 64), "mpi/ fallback");
  lanes.pop_back();
  EXPECT_EQ(taken(Routing({none, none, nullptr, {2, 2}}, lanes), Op::all_reduce, 64, Memory::cuda), "none");
}

TEST_F(RoutingOfAComm, WithoutSharedMemoryAPairServesTheCollectivesItHasInPhases) {
  lanes.erase(lanes.begin() + 1);
  lanes.push_back(make_lane());
  lanes.back()->name = "shm+ucx";
  lanes.back()->in_phases[static_cast<std::size_t>(Op::all_reduce)] = true;
  const Routing routing({none, none, nullptr, {2, 2}}, lanes);
  EXPECT_EQ(taken(routing, Op::all_reduce, 64), "shm+ucx/ fallback");
  EXPECT_EQ(taken(routing, Op::gather, 64), "mpi/ fallback");
  EXPECT_EQ(taken(routing, Op::send, 64), "mpi/ fallback");
  EXPECT_EQ(taken(routing, Op::all_reduce, 64, Memory::cuda), "nccl/ fallback");
}

TEST_F(RoutingOfAComm, CudaMemoryIsStagedWhereNoBackendMovesIt) {
  for (FakeBackend* backend : {&mpi, &shm}) {
    lanes.push_back(make_lane());
    lanes.back()->backend = backend;
    lanes.back()->name = backend->name_;
    lanes.back()->host = false;
    lanes.back()->cuda = lanes.back()->staged = true;
  }
  route::Table table;
  auto measured = cell(Op::all_gather, {1, 4}, 64,
                       {timing("nccl", "ring", 1), timing("shm", "ring", 2), timing("nccl", "native", 9)});
  measured.key.memory = Memory::cuda;
  table.put(measured);
  const Routing routing({none, none, &table, {1, 4}}, lanes);
  EXPECT_EQ(taken(routing, Op::all_gather, 64, Memory::cuda), "shm/ring table");  // nccl has no algorithms of ours
  EXPECT_EQ(taken(routing, Op::broadcast, 64, Memory::cuda), "nccl/ fallback");
  EXPECT_EQ(taken(routing, Op::barrier, 0), "shm/ fallback");
  lanes.erase(lanes.begin() + 3);
  const Routing without({none, none, nullptr, {1, 4}}, lanes);
  EXPECT_EQ(taken(without, Op::broadcast, 64, Memory::cuda), "mpi/ fallback");
  EXPECT_EQ(taken(without, Op::broadcast, 64), "shm/ fallback");
}

TEST_F(RoutingOfAComm, CountsThatDifferFromRankToRankDoNotDecide) {
  const Rules rules = Rules::parse("all_to_allv:0-4K=ucx;all_gatherv:0-4K=ucx;*=mpi");
  const Routing routing({rules, none, nullptr, {1, 4}}, lanes);
  EXPECT_EQ(taken(routing, Op::all_to_allv, 8), taken(routing, Op::all_to_allv, 1 << 30));
  EXPECT_EQ(taken(routing, Op::all_gatherv, 8), "ucx/ rule");  // its total is known to all
}

TEST_F(RoutingOfAComm, SizesAreAgreedOnOnlyWhereTheyDecide) {
  const auto by_size = [this](const char* text, Memory memory = Memory::host) {
    const Rules rules = Rules::parse(text);
    return Routing({rules, none, nullptr, {1, 4}}, lanes).by_size(Op::all_to_allv, memory);
  };
  EXPECT_FALSE(by_size(""));
  EXPECT_FALSE(by_size("all_to_all:0-4K=ucx"));
  EXPECT_FALSE(by_size("all_to_allv:0-4K=shm"));  // the route of all other sizes as well
  EXPECT_TRUE(by_size("all_to_allv:0-4K=shm/linear"));
  EXPECT_TRUE(by_size("all_to_allv:0-4K=ucx"));
  EXPECT_TRUE(by_size("*:0-4K=ucx;*=mpi"));
  EXPECT_FALSE(by_size("*:0-4K=ucx;*=mpi", Memory::cuda));
}

TEST_F(RoutingOfAComm, WhatRunsInStreamsIsLaunchedAtOnceAndWaitsForNoSize) {
  lanes.push_back(make_lane());
  lanes.back()->name = "mpi";
  lanes.back()->host = false;
  lanes.back()->cuda = lanes.back()->staged = true;
  const Rules rules = Rules::parse("all_to_allv:0-4K=mpi");
  EXPECT_TRUE(Routing({rules, none, nullptr, {1, 4}}, lanes).by_size(Op::all_to_allv, Memory::cuda));
  lanes[3]->in_streams = true;  // nccl
  EXPECT_FALSE(Routing({rules, none, nullptr, {1, 4}}, lanes).by_size(Op::all_to_allv, Memory::cuda));
}

TEST_F(RoutingOfAComm, OneRankAloneKnowsEverySize) {
  const Rules rules = Rules::parse("all_to_allv:0-4K=ucx;*=mpi");
  const Routing routing({rules, none, nullptr, {1, 1}}, lanes);
  Call call;
  call.op = Op::all_to_allv;
  call.dtype = DType::u8;
  call.in_count = call.out_count = 8;
  EXPECT_EQ(routing.find(call, 1)->lane->name, "ucx");
  EXPECT_EQ(routing.find(call, 2)->lane->name, "mpi");
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("medley_auto_{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The errors from creating a context on each of two ranks.
std::vector<std::string> errors_with(const std::string& first, const std::string& second) {
  const auto store = make_local_store();
  std::vector<std::string> errors(2, "no error");
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      ContextOptions options = test::options_of(rank, 2, store);
      options.table = rank == 0 ? first : second;
      try {
        Context context(options);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return errors;
}

TEST(TableOfAContext, MustBeTheSameOnAllRanks) {
  const Folder folder;
  route::Table table = route::small_table();
  table.save(folder / "one.json");
  table.put(cell(Op::barrier, {1, 2}, 0, {timing("shm", "native", 1)}));
  table.save(folder / "two.json");
  std::ofstream(folder / "broken.json") << "{";
  for (const std::string& error : errors_with(folder / "one.json", folder / "two.json")) {
    EXPECT_THAT(error, HasSubstr("rank 0 has the route table " + (folder / "one.json")));
    EXPECT_THAT(error, HasSubstr("but rank 1 has " + (folder / "two.json")));
  }
  for (const std::string& error : errors_with(folder / "one.json", folder / "broken.json")) {
    EXPECT_THAT(error, HasSubstr("broken.json is not JSON"));
    EXPECT_THAT(error, HasSubstr("rank 1"));
  }
  for (const std::string& error : errors_with(folder / "one.json", folder / "none.json")) {
    EXPECT_THAT(error, HasSubstr("none.json does not exist"));
  }
  for (const std::string& error : errors_with(folder / "one.json", folder / "one.json")) EXPECT_EQ(error, "no error");
}

TEST(TableOfAContext, CarriesOperations) {
  const Folder folder;
  route::Table table = route::small_table();
  table.machine.libraries = {};
  table.save(folder / "routes.json");
  test::run_threads(
      2,
      [&](Context& context) {
        EXPECT_EQ(context.table().hash, table.hash());
        EXPECT_EQ(context.table().note, "");
        Comm world = context.world();
        for (const std::size_t count : {1u, 1u << 18}) {  // one route each
          std::vector<float> values(count, 1.0f);
          world.all_reduce(values, sum);
          EXPECT_EQ(values.back(), 2.0f);
        }
      },
      [&](ContextOptions& options) { options.table = folder / "routes.json"; });
}

TEST(TableOfAContext, OfAnotherMachineIsUsedWhenAskedForAndSaysSo) {
  const Folder folder;
  route::Table table = route::small_table();
  table.machine.cores += 1000;
  table.save(folder / "far.json");
  test::run_threads(
      2, [&](Context& context) { EXPECT_THAT(context.table().note, HasSubstr("from another machine")); },
      [&](ContextOptions& options) { options.table = folder / "far.json"; });
}

TEST(TableOfAContext, LiesInTheCacheAndIsPassedOverWhereItDoesNotFit) {
  const Folder folder;
  setenv("XDG_CACHE_HOME", (folder / "").c_str(), 1);
  route::Table table = route::small_table();
  table.save(route::cached_table());
  test::run_threads(2, [&](Context& context) { EXPECT_EQ(context.table().hash, table.hash()); });
  table.machine.cpu = "abacus";
  table.save(route::cached_table());
  test::run_threads(2, [&](Context& context) {
    EXPECT_EQ(context.table().path, "");
    EXPECT_THAT(context.table().note, HasSubstr("does not fit"));
  });
  std::ofstream(route::cached_table()) << "rubbish";
  test::run_threads(2, [&](Context& context) { EXPECT_THAT(context.table().note, HasSubstr("not JSON")); });
  unsetenv("XDG_CACHE_HOME");
}

TEST(TableOfAStep, OpensOnlyTheLibrariesOfItsRoutes) {
  setenv("MEDLEY_CUDA", "0", 1);  // with CUDA tensors the table of a step on host memory does not say what is needed
  const auto file = std::filesystem::temp_directory_path() / fmt::format("medley_auto_step_{}.json", getpid());
  route::tuned_table("shm").save(file);
  const auto open = [](const ContextOptions& options) {
    std::map<std::string, std::string> reasons;  // by backend: why it is not open; empty: it is
    const Context context(options);
    for (const BackendInfo& backend : context.backends()) reasons[backend.name] = backend.reason;
    return reasons;
  };
  const auto all = open({.table = file, .hierarchical = true}), needed = open({.table = file});
  EXPECT_EQ(needed.at("shm"), "");
  int closed = 0;
  for (const auto& [name, reason] : all) {
    if (name == "shm" || !reason.empty()) continue;  // only those that would work
    EXPECT_THAT(needed.at(name), HasSubstr("never chooses it")) << name;
    ++closed;
  }
  for (const auto& [name, reason] : open({.table = file, .online = true}))  // its routes may go to any of them
    EXPECT_EQ(reason, all.at(name)) << name;
  for (const char* rules : {"send=shm", "all_reduce=auto+int8"}) {  // the second names no library
    for (const auto& [name, reason] : open({.rules = rules, .table = file}))
      EXPECT_EQ(reason.empty(), needed.at(name).empty()) << rules << ", " << name;
  }
  std::filesystem::remove(file);
  unsetenv("MEDLEY_CUDA");
  if (closed == 0) GTEST_SKIP() << "shm is the only backend here";
}

TEST(TableOfOperations, OpensOnlyWhatItChoosesWhereThatIsAskedFor) {
  setenv("MEDLEY_CUDA", "0", 1);
  const Folder folder;
  route::small_table().save(folder / "routes.json");  // shm alone
  std::mutex mutex;
  const auto open = [&](std::vector<std::string> backends, const std::string& rules = "") {
    std::map<std::string, std::string> reasons;
    test::run_threads(
        2,
        [&](Context& context) {
          Comm world = context.world();
          std::vector<float> values(64, 1);
          world.all_reduce(values, sum);
          EXPECT_EQ(values[63], 2);
          const std::lock_guard lock(mutex);
          for (const BackendInfo& backend : context.backends()) reasons[backend.name] = backend.reason;
        },
        [&](ContextOptions& options) {
          options.table = folder / "routes.json";
          options.backends = backends;
          options.rules = rules;
        });
    return reasons;
  };
  const auto all = open({}), needed = open({"auto"}), permitting = open({"auto"}, "all_reduce=auto+bf16");
  EXPECT_EQ(needed.at("shm"), "");
  int closed = 0;
  for (const auto& [name, reason] : all) {
    if (name == "shm" || !reason.empty()) continue;  // only those that would work
    EXPECT_THAT(needed.at(name), HasSubstr("never chooses it")) << name;
    // A rule lets the table choose compressed routes too, over any library
    EXPECT_EQ(permitting.at(name), "") << name;
    EXPECT_EQ(open({"auto"}, "broadcast=" + name).at(name), "");
    ++closed;
  }
  unsetenv("MEDLEY_CUDA");
  if (closed == 0) GTEST_SKIP() << "shm is the only backend here";
}

}  // namespace
}  // namespace medley

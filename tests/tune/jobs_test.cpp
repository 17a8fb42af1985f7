// Whole benchmarks and tuning runs on a job of one rank, without the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <medley/context.hpp>
#include <medley/error.hpp>

#include "route/tables.hpp"
#include "tune/bench_job.hpp"
#include "tune/placement.hpp"
#include "tune/tune_job.hpp"
#include "tune/tuner.hpp"

namespace medley::tune {
namespace {

using ::testing::HasSubstr;

TEST(BenchJob, MeasuresTheRoutesAskedFor) {
  const BenchRequest request{
      .options = {.ops = {Op::all_reduce}, .sizes = {64, 256}, .wanted = {{"shm"}}, .seconds = 0.01}};
  int begun = 0;
  std::size_t cells = 0;
  const auto result = run_bench(request, {.begin = [&](const BenchJob& job) { begun += job.ranks; },
                                          .progress = [&](std::size_t done, std::size_t) { cells = done; }});
  ASSERT_TRUE(std::holds_alternative<BenchResult>(result));
  const auto& bench = std::get<BenchResult>(result);
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(cells, 2u);
  ASSERT_EQ(bench.rows.size(), 2u);
  EXPECT_EQ(bench.rows[1].bytes, 256u);
  EXPECT_FALSE(bench.routes_compete);
  EXPECT_FALSE(bench.job.follows_table);
}

TEST(TuneJob, RefusesTheTableOfAnotherMachine) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "another-machine.json";
  route::Table table = route::small_table();
  table.machine.cpu = "Abacus";
  table.save(file);
  std::string said;
  try {
    run_tune({.options = {.ops = {Op::barrier}, .sizes = {}, .backends = {"shm"}, .seconds = 0.1}, .file = file}, {});
  } catch (const Error& error) {
    said = error.what();
  }
  EXPECT_THAT(said, HasSubstr("another-machine.json is the table of another machine"));
  EXPECT_EQ(route::Table::load(file).machine.cpu, "Abacus");  // untouched
  std::filesystem::remove(file);
}

// Ranks that choose the next cell from times with more digits than the others' soon measure different operations.
TEST(TuneJob, RankZeroKeepsNoDigitsThatItsTableDoesNotShare) {
  Context context(ContextOptions{.backends = {"shm"}});
  Comm world = context.world();
  route::Table table = route::small_table();
  const route::Key key = table.cells().front().key;
  route::Cell measured = table.cells().front();
  measured.routes.front().median_us = measured.routes.front().low_us = measured.routes.front().high_us = 1.23456789;
  table.put(measured);
  share_table(world, table);
  EXPECT_EQ(table.find(key)->routes.front().median_us, 1.235);
}

TEST(TuneJob, SavesItsTableWhenItIsStopped) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "stopped.json";
  std::filesystem::remove(file);
  const TuneResult result =
      run_tune({.options = {.ops = {Op::barrier}, .sizes = {}, .backends = {"shm"}}, .file = file},
               {.stop = [] { return true; }});
  EXPECT_EQ(result.file, file);
  EXPECT_EQ(route::Table::load(file).hash(), result.table.hash());
  EXPECT_EQ(result.new_cells, result.table.cells().size());
  std::filesystem::remove(file);
}

TEST(Placement, AFullMachineBetweenHostsGetsAdvice) {
  const auto on = [](std::size_t machine, std::initializer_list<int> cores) {
    Placement one{machine, {}};
    CPU_ZERO(&one.cores);
    for (const int core : cores) CPU_SET(core, &one.cores);
    return one;
  };
  const std::vector<Placement> full{on(1, {0, 1}), on(1, {0, 1})}, free{on(1, {0, 1, 2}), on(1, {0, 1, 2})},
      apart{on(1, {0}), on(2, {0})};
  EXPECT_THAT(advice_on_cores(full, {0, 1}), HasSubstr("leave a core per host: 2 ranks fill all 2 cores"));
  EXPECT_EQ(advice_on_cores(full, {0, 0}), "");  // no network
  EXPECT_EQ(advice_on_cores(free, {0, 1}), "");
  EXPECT_THAT(advice_on_cores(apart, {0, 1}), HasSubstr("1 ranks fill all 1 cores"));
}

}  // namespace
}  // namespace medley::tune

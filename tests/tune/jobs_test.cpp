// Whole benchmarks and tuning runs on a job of one rank, without the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <medley/context.hpp>
#include <medley/error.hpp>
#include <set>

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

/// What a tuner did with a step.
struct Seen {
  int runs = 0;
  std::set<std::string> ran, checked;  ///< the routes of all its operations
};

class FakeStep final : public Step {
 public:
  FakeStep(std::vector<StepOperation> operations, Seen& seen) : operations_(std::move(operations)), seen_(seen) {}
  const std::vector<StepOperation>& operations() const override { return operations_; }
  void run(const StepRoutes& routes) override {
    ++seen_.runs;
    seen_.ran.insert(text(routes));
  }
  void check(const StepRoutes& routes, std::string_view) override {
    seen_.checked.insert(text(routes));
    run(routes);
  }

 private:
  std::string text(const StepRoutes& routes) const {
    std::vector<Choice> all;
    for (const StepOperation& one : operations_) all.push_back(routes.of(one.op, one.dtype, one.bytes, one.shape));
    return text_of(all);
  }
  std::vector<StepOperation> operations_;
  Seen& seen_;
};

class TuneAStep : public testing::Test {
 protected:
  ~TuneAStep() override { std::filesystem::remove(file_); }

  /// Tunes for the step, from what is in the file.
  route::TunedStep tune(std::vector<std::string> backends, double seconds, std::function<bool()> stop) {
    const TuneRequest request{
        .options = {.ops = {}, .sizes = {}, .backends = std::move(backends), .seconds = seconds},
        .file = file_,
        .step = [this](Context&) -> std::unique_ptr<Step> { return std::make_unique<FakeStep>(operations_, seen_); },
        .step_name = "fake",
        .replace = replace_};
    return *run_tune(request, {.stop = std::move(stop)}).table.step;
  }
  route::TunedStep tune(std::vector<std::string> backends) {
    return tune(std::move(backends), 0, [] { return false; });
  }
  /// A table of an earlier run: over one library, or a mix.
  route::Table earlier(const std::string& library) {
    route::Table table = route::tuned_table(library);
    table.step->operations = fingerprint(operations_, 0);
    table.step->shape = {1, 1};
    table.step->libraries = {{"shm", 120, 110, 130, 20}};
    table.step->routes = {{Op::all_reduce,
                           route::DTypeClass::floating,
                           {1, 2},
                           0,
                           INT64_MAX,
                           {"shm", library.empty() ? "ring" : "native"}}};
    return table;
  }

  const std::filesystem::path file_ = std::filesystem::path(testing::TempDir()) / "fake-step.json";
  bool replace_ = false;
  std::vector<StepOperation> operations_{{Op::all_reduce, DType::f32, 4096, {1, 2}}};
  Seen seen_;
};

TEST_F(TuneAStep, ASettledTableIsTunedAgainOnlyForALibraryThatItDoesNotKnow) {
  earlier("shm").save(file_);
  EXPECT_TRUE(tune({"shm"}, 60, [] { return false; }).settled);
  EXPECT_LE(seen_.runs, 10) << "some samples say whether it still holds";
  EXPECT_FALSE(tune({"shm", "plain"}).settled);
  EXPECT_GT(seen_.runs, 0);
}

TEST_F(TuneAStep, ASettledTableOfAnotherStepIsGivenUpOnlyOnRequest) {
  route::Table table = earlier("shm");
  table.step->operations = "another";
  table.save(file_);
  try {
    tune({"shm"});
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    EXPECT_THAT(error.what(), HasSubstr("--replace"));
  }
  EXPECT_EQ(route::Table::load(file_).step->operations, "another");
  replace_ = true;
  EXPECT_EQ(tune({"shm"}).operations, fingerprint(operations_, 0));
}

TEST_F(TuneAStep, AnEarlierMixStaysUntilThisRunHasComparedIt) {
  route::Table table = earlier("");
  table.step->settled = false, table.step->needed_s = 70;
  table.save(file_);
  const route::TunedStep step = tune({"shm"}, 60, [] { return true; });
  EXPECT_EQ(step.library, "");
  ASSERT_EQ(step.routes.size(), 1u);
  EXPECT_EQ(step.routes[0].route, (Choice{"shm", "ring"}));
  EXPECT_FALSE(step.settled);
  EXPECT_NE(step.needed_s, 70) << "the time that was not enough";
}

TEST_F(TuneAStep, AChoiceThatIsNotOpenAnyMoreIsReplaced) {
  route::Table table = earlier("");
  table.step->routes[0].route.backend = "gone";
  table.save(file_);
  EXPECT_EQ(tune({"shm"}).library, "shm");
}

// Operations of one size and two element types give two changes of one name.
TEST_F(TuneAStep, EveryAssignmentIsCheckedBeforeItIsTimed) {
  operations_.push_back({Op::all_reduce, DType::bf16, 4096, {1, 2}});
  route::Table table = route::small_table();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    route::Cell cell = route::cell(Op::all_reduce, {1, 2}, 4096,
                                   {route::timing("shm", "native", 1), route::timing("shm", "ring", 1.1)});
    cell.key.dtype = route::class_of(Op::all_reduce, dtype);
    table.put(cell);
  }
  table.save(file_);
  tune({"shm"}, 0.3, [] { return false; });
  EXPECT_GE(seen_.ran.size(), 3u);
  EXPECT_EQ(seen_.ran, seen_.checked);
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

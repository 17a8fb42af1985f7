// medley tune, explain and bench as commands: resuming, being killed, refusing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_fixture.hpp"
#include "route/tables.hpp"

namespace medley {
namespace {

using test::Process;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class TuneCommand : public test::CommandTest {
 protected:
  std::vector<std::string> tune_words(const std::string& seconds, const std::string& ops = "all_reduce,all_to_all",
                                      const std::string& sizes = "64:16K") const {
    return {"tune",    "-n",  "2",         "--backends", "shm", "--op",        ops,
            "--sizes", sizes, "--seconds", seconds,      "-o",  file("t.json")};
  }
  /// Runs longer than a test waits.
  std::vector<std::string> long_words() const { return tune_words("60", "all", "4:64M"); }
};

TEST_F(TuneCommand, WritesATableAndASecondCallGoesOnWithIt) {
  const Ended first = run(tune_words("1.5"));
  ASSERT_EQ(first.status, 0) << first.err;
  const route::Table table = route::Table::load(file("t.json"));
  ASSERT_FALSE(table.cells().empty());
  EXPECT_THAT(first.out, HasSubstr("hash " + table.hash()));
  for (const route::Cell& cell : table.cells()) EXPECT_GE(cell.routes.front().samples, 8) << "fewer choose at random";
  EXPECT_EQ(table.machine.libraries.count("shm"), 1u);
  const Ended second = run(tune_words("1"));
  ASSERT_EQ(second.status, 0) << second.err;
  const route::Table more = route::Table::load(file("t.json"));
  for (const route::Cell& cell : table.cells()) EXPECT_NE(more.find(cell.key), nullptr);

  const Ended explained =
      run({"explain", "--table", file("t.json"), "--op", "allreduce", "--bytes", "64", "--ranks", "2", "--json", "-"});
  ASSERT_EQ(explained.status, 0) << explained.err;
  const auto answer = nlohmann::json::parse(explained.out);
  EXPECT_EQ(answer["reason"], "table");
  EXPECT_EQ(answer["route"]["backend"], "shm");
  EXPECT_EQ(answer["table"], more.hash());
  const Ended shown =
      run({"explain", "--table", file("t.json"), "--op", "all_reduce", "--bytes", "64", "--ranks", "2"});
  EXPECT_THAT(shown.out, ContainsRegex("is the fastest: [0-9.]+ %; the next takes [0-9.]+ % longer"));

  const Ended bench =
      run({"bench", "-n", "2", "--op", "all_reduce,all_to_allv", "--sizes", "64:64", "--backends", "shm,auto",
           "--table", file("t.json"), "--counts", "both", "--seconds", "0.2", "--json", "-"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  const auto rows = nlohmann::json::parse(bench.out)["rows"];
  EXPECT_EQ(rows.size(), 6u);
  int fastest = 0;
  for (const auto& row : rows) fastest += row["fastest"].get<bool>();
  EXPECT_EQ(fastest, 3);
  EXPECT_THAT(bench.err, HasSubstr("auto by " + file("t.json")));
}

TEST_F(TuneCommand, KilledAtAnyMomentLeavesAReadableTable) {
  for (const int milliseconds : {300, 900, 1700}) {
    std::vector<std::string> words = long_words();
    words.insert(words.begin(), MEDLEY_COMMAND);
    {
      Process process(words);
      usleep(static_cast<unsigned>(milliseconds) * 1000);  // any moment is fine
      process.signal(SIGKILL);
    }
    std::error_code none;
    if (std::filesystem::exists(file("t.json"), none)) {
      EXPECT_NO_THROW(route::Table::load(file("t.json")));
    }
  }
}

TEST_F(TuneCommand, AnInterruptKeepsWhatWasMeasured) {
  std::vector<std::string> words = long_words();
  words.insert(words.begin(), MEDLEY_COMMAND);
  Process process(words);
  for (int i = 0; i < 600 && !std::filesystem::exists(file("t.json")); ++i) usleep(50'000);
  process.signal(SIGINT);
  process.finish();
  EXPECT_THAT(process.err, HasSubstr("the same command goes on"));
  EXPECT_FALSE(route::Table::load(file("t.json")).cells().empty());
}

TEST_F(TuneCommand, RefusesWhatIsNoTableOrOfAnotherMachine) {
  std::ofstream(file("t.json")) << "{\"medley_routes\": 1}";
  const Ended broken = run(tune_words("1"));
  EXPECT_NE(broken.status, 0);
  EXPECT_THAT(broken.err, HasSubstr("\"machine\" is missing"));
  const Ended explained =
      run({"explain", "--table", file("t.json"), "--op", "all_reduce", "--bytes", "4", "--ranks", "2"});
  EXPECT_EQ(explained.status, 2);
  EXPECT_THAT(explained.err, HasSubstr("\"machine\" is missing"));
  route::Table far;
  far.machine.cpu = "abacus";
  far.machine.cores = 10;
  far.save(file("t.json"));
  const Ended other = run(tune_words("1"));
  EXPECT_NE(other.status, 0);
  EXPECT_THAT(other.err, HasSubstr("another machine"));
  EXPECT_EQ(run({"explain", "--table", file("t.json"), "--op", "spin", "--bytes", "4", "--ranks", "2"}).status, 2);
  EXPECT_EQ(run({"explain", "--table", file("t.json"), "--op", "all_reduce", "--bytes", "4x", "--ranks", "2"}).status,
            2);
  EXPECT_EQ(
      run({"explain", "--table", file("t.json"), "--op", "all_reduce", "--bytes", "4", "--ranks", "2", "--hosts", "3"})
          .status,
      2);
}

TEST_F(TuneCommand, BenchRefusesAnAlgorithmThatNoOperationHas) {
  const Ended wrong = run(
      {"bench", "-n", "2", "--op", "all_reduce", "--sizes", "4:4", "--backends", "shm", "--algorithms", "native,rnig"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no operation has an algorithm 'rnig'; there are "));
  EXPECT_THAT(wrong.err, HasSubstr("ring"));
}

TEST_F(TuneCommand, BenchNamesTheBackendsOfTheTableThatAreNotOpen) {
  route::tuned_table().save(file("t.json"));  // shm and mpi
  const Ended closed =
      run({"bench", "-n", "2", "--op", "barrier", "--backends", "shm,auto", "--table", file("t.json")});
  EXPECT_EQ(closed.status, 0);
  EXPECT_THAT(closed.err, HasSubstr("the table chooses mpi, which is not open"));
  route::small_table().save(file("t.json"));  // shm alone
  const Ended open = run({"bench", "-n", "2", "--op", "barrier", "--backends", "shm,auto", "--table", file("t.json")});
  EXPECT_THAT(open.err, Not(HasSubstr("not open")));
}

TEST_F(TuneCommand, BenchMeasuresABackendsOwnAlgorithms) {
  const Ended own = run({"bench", "-n", "2", "--op", "scatter", "--sizes", "64K:64K", "--backends", "shm",
                         "--algorithms", "direct,segment", "--seconds", "0.1"});
  EXPECT_EQ(own.status, 0) << own.err;
  EXPECT_THAT(own.out, HasSubstr("segment"));
}

class TuneForAStep : public TuneCommand {
 protected:
  std::vector<std::string> words_for(const std::string& step, const std::string& seconds) const {
    return {"tune", "-n", "2", "--backends", "shm,gloo", "--for", step, "--seconds", seconds, "-o", file("t.json")};
  }
};

TEST_F(TuneForAStep, TheTableRecordsTheStepAndContextsTakeItsRoutes) {
  const Ended tuned = run(words_for("moe", "2"));
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const route::Table table = route::Table::load(file("t.json"));
  ASSERT_TRUE(table.step);
  EXPECT_EQ(table.step->name, "moe");
  EXPECT_EQ(table.step->shape, (route::Shape{1, 2}));
  ASSERT_EQ(table.step->libraries.size(), 2u);
  const auto json = nlohmann::json::parse(table.text());
  EXPECT_EQ(json["step"].size(), 2u);
  EXPECT_GT(json["auto_us"].get<double>(), 0);
  if (!table.step->library.empty()) {  // no mix won: every route names the library
    for (const route::StepRoute& route : table.step->routes) EXPECT_EQ(route.route.backend, table.step->library);
  }
  const Ended explained = run({"explain", "--table", file("t.json"), "--step", "moe", "--json", "-"});
  ASSERT_EQ(explained.status, 0) << explained.err;
  const auto answer = nlohmann::json::parse(explained.out);
  EXPECT_EQ(answer["auto_us"], json["auto_us"]);
  ASSERT_EQ(answer["rows"].size(), 2u);
  for (const auto& row : answer["rows"]) EXPECT_EQ(row["reason"], "step");
  EXPECT_EQ(answer["library"], table.step->best_library()->name);
  const Ended other = run({"explain", "--table", file("t.json"), "--step", "dense"});
  EXPECT_THAT(other.out, HasSubstr("the table was tuned for another step (moe);"));
  const Ended memory = run({"explain", "--table", file("t.json"), "--step", "moe", "--memory", "cuda"});
  EXPECT_THAT(memory.out, HasSubstr("the table was tuned for moe on host memory, not cuda;"));
  const Ended ranks = run({"explain", "--table", file("t.json"), "--step", "moe", "--ranks", "4"});
  EXPECT_THAT(ranks.out, HasSubstr("the table was tuned for moe on 1 host x 2 ranks, and the operations, their sizes"));
}

TEST_F(TuneForAStep, TooShortATimeGivesTheBestLibrary) {
  const Ended tuned = run(words_for("dense", "0.1"));
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const route::Table table = route::Table::load(file("t.json"));
  ASSERT_TRUE(table.step);
  EXPECT_EQ(table.step->library, table.step->libraries.front().name);
}

TEST_F(TuneForAStep, AnInterruptKeepsTheBestLibraryAndTheSameCommandContinues) {
  std::vector<std::string> words = words_for("dlrm", "60");
  words.insert(words.begin(), MEDLEY_COMMAND);
  Process process(words);
  for (int i = 0; i < 600 && !std::filesystem::exists(file("t.json")); ++i) usleep(50'000);
  process.signal(SIGINT);
  process.finish();
  const route::Table table = route::Table::load(file("t.json"));
  ASSERT_TRUE(table.step) << process.err;
  EXPECT_FALSE(table.step->libraries.empty());
  const Ended second = run(words_for("dlrm", "1"));
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_TRUE(route::Table::load(file("t.json")).step);
}

TEST_F(TuneForAStep, RunsAScheduleWithItsOverlapAndRefusesWhatIsNone) {
  std::ofstream(file("step.json")) << R"({"schema": "medley.schedule/1", "groups": {"dp": "all"}, "entries": [
    {"kind": "comm", "op": "all_reduce", "group": "dp", "bytes": 65536, "dtype": "bf16", "token": 1},
    {"kind": "gemm", "m": 64, "n": 64, "k": 64},
    {"kind": "comm", "op": "all_gather", "group": "dp", "bytes": 16384, "dtype": "f32"},
    {"kind": "wait", "token": 1}]})";
  const Ended tuned = run(words_for(file("step.json"), "1"));
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  const route::Table table = route::Table::load(file("t.json"));
  ASSERT_TRUE(table.step);
  EXPECT_EQ(table.step->name, "step.json");
  EXPECT_GE(table.step->routes.size(), 2u);
  const Ended explained = run({"explain", "--table", file("t.json"), "--step", file("step.json"), "--json", "-"});
  ASSERT_EQ(explained.status, 0) << explained.err;
  EXPECT_TRUE(nlohmann::json::parse(explained.out).contains("auto_us"));
  EXPECT_EQ(run(words_for("no-such-mix", "1")).status, 2);
  std::ofstream(file("quiet.json"))
      << R"({"schema": "medley.schedule/1", "groups": {}, "entries": [{"kind": "gemm", "m": 4, "n": 4, "k": 4}]})";
  const Ended quiet = run(words_for(file("quiet.json"), "1"));
  EXPECT_EQ(quiet.status, 2);
  EXPECT_THAT(quiet.err, HasSubstr("its ranks send nothing"));
}

}  // namespace
}  // namespace medley

// medley bench, tune and bench --mix on CUDA memory, over mocks of CUDA and NCCL: the content of rows,
// detection of wrong values, and that auto uses the cells of CUDA memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/process.hpp"
#include "device/rank_device.hpp"
#include "route/table.hpp"

namespace medley {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class MeasureCuda : public ::testing::Test {
 protected:
  MeasureCuda() { std::filesystem::create_directories(folder); }
  ~MeasureCuda() override { std::filesystem::remove_all(folder); }
  std::string file(const std::string& name) const { return folder / name; }
  struct Ended {
    int status;
    std::string out, err;
  };
  Ended run(Words words, std::map<std::string, std::string> more = {}) const {
    words.insert(words.begin(), MEDLEY_COMMAND);
    more.insert({{"MEDLEY_CUDA", "1"}, {"MEDLEY_BACKEND_PATH", MOCK_BACKENDS}, {"XDG_CACHE_HOME", folder.string()}});
    test::Process process(words, more);
    process.finish();
    return {process.status, process.out, process.err};
  }
  Words tune_words(const std::string& memory, const std::string& backends) const {
    return {"tune",       "-n",          "2",        "--memory",        memory,
            "--backends", backends,      "--op",     "all_reduce,send", "--sizes",
            "64:1K",      "--dtype",     "f32,bf16", "--seconds",       "1.5",
            "-o",         file("t.json")};
  }
  /// The backends and algorithms that all_reduce used in a bench of auto.
  std::string routes_of_auto(const Words& table) const {
    Words words{"bench", "-n",         "2",       "--memory", "cuda",      "--backends", "nccl,shm,auto",
                "--op",  "all_reduce", "--sizes", "64:64",    "--seconds", "0.2"};
    words.insert(words.end(), table.begin(), table.end());
    const std::string traces = file("trace");
    std::filesystem::remove_all(traces);
    const Ended bench = run(words, {{"MEDLEY_TRACE", traces}});
    EXPECT_EQ(bench.status, 0) << bench.err;
    return run({"trace", traces, "--csv", "-"}).out;
  }
  std::filesystem::path folder = std::filesystem::temp_directory_path() / fmt::format("medley_measure_{}", getpid());
};

TEST_F(MeasureCuda, BenchMeasuresEveryOperationOverEveryBackend) {
  const Ended bench = run({"bench", "-n",      "2",        "--memory", "cuda",         "--backends", "nccl,shm",
                           "--op",  "all",     "--counts", "both",     "--sizes",      "64:64",      "--seconds",
                           "1",     "--batch", "3",        "--json",   file("b.json"), "--csv",      "-"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  std::ifstream stream(file("b.json"));
  const auto rows = nlohmann::json::parse(stream)["rows"];
  std::map<std::string, std::set<std::string>> ops;
  for (const auto& row : rows) {
    EXPECT_EQ(row["memory"], "cuda");
    EXPECT_GT(row["median_us"], 0);
    ops[row["op"].get<std::string>() + row["counts"].get<std::string>()].insert(row["backend"]);
  }
  EXPECT_EQ(ops.size(), op_count - 1 + 5u) << "recv goes with send, and five v-collectives are there twice";
  for (const auto& [op, backends] : ops) EXPECT_EQ(backends, (std::set<std::string>{"nccl", "shm"})) << op;
  EXPECT_THAT(bench.out, HasSubstr("all_reduce,shm,native,cuda,f32"));
}

TEST_F(MeasureCuda, NcclAloneIsMeasuredToo) {
  const Ended bench = run({"bench", "-n", "2", "--memory", "cuda", "--backends", "nccl", "--op", "all_reduce",
                           "--algorithms", "all", "--sizes", "64:64", "--seconds", "0.2"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  EXPECT_THAT(bench.out, ContainsRegex("all_reduce +64 +cuda +nccl +native"));
  EXPECT_THAT(bench.out, Not(HasSubstr("ring"))) << "NCCL has no algorithms of ours";
  EXPECT_THAT(bench.out, Not(HasSubstr("shm"))) << "it only carries what ranks tell each other";
}

TEST_F(MeasureCuda, AWrongValueIsFound) {
  const Ended bench = run({"bench", "-n", "2", "--memory", "cuda", "--backends", "nccl", "--op", "all_reduce",
                           "--sizes", "64:64", "--seconds", "0.2"},
                          {{"MOCK_NCCL_WRONG", "1"}});
  EXPECT_EQ(bench.status, 1);
  EXPECT_THAT(bench.err, HasSubstr("all_reduce of 64 bytes in cuda memory over nccl gave a wrong value at element 15"));
  const Ended tuned = run(tune_words("cuda", "nccl,shm"), {{"MOCK_NCCL_WRONG", "1"}});
  EXPECT_EQ(tuned.status, 1);
  EXPECT_THAT(tuned.err, HasSubstr("gave a wrong value"));
}

TEST_F(MeasureCuda, MixesRunOverEachBackendAndAutoAndAreChecked) {
  const Words words{"bench", "-n",  "2",         "--memory", "cuda",   "--backends", "nccl,shm,auto",
                    "--mix", "all", "--seconds", "0.3",      "--json", "-"};
  const Ended mixes = run(words);
  ASSERT_EQ(mixes.status, 0) << mixes.err;
  std::set<std::string> seen;
  const auto answer = nlohmann::json::parse(mixes.out);
  for (const auto& row : answer["mixes"]) {
    EXPECT_EQ(row["memory"], "cuda");
    seen.insert(row["mix"].get<std::string>() + " " + row["backend"].get<std::string>());
  }
  EXPECT_EQ(seen.size(), 9u);
  for (const char* mix : {"moe", "dlrm", "dense"}) {
    const Ended wrong =
        run({"bench", "-n", "2", "--memory", "cuda", "--backends", "shm,nccl", "--mix", mix, "--seconds", "0.2"},
            {{"MOCK_NCCL_WRONG", "65536"}});
    EXPECT_EQ(wrong.status, 1);
    EXPECT_THAT(wrong.err, HasSubstr(fmt::format("the mix {} over nccl gave a wrong value at element 131071", mix)));
  }
}

TEST_F(MeasureCuda, TuneAddsCellsOfCudaMemoryWhichAutoTakes) {
  const Ended host = run(tune_words("host", "shm"));
  ASSERT_EQ(host.status, 0) << host.err;
  const Ended cuda = run(tune_words("cuda", "nccl,shm"));
  ASSERT_EQ(cuda.status, 0) << cuda.err;
  EXPECT_THAT(cuda.out, ContainsRegex("1 x 2 +cuda +all_reduce +half"));
  route::Table table = route::Table::load(file("t.json"));
  std::map<Memory, std::set<std::pair<Op, route::DTypeClass>>> kinds;
  std::set<std::string> routes;
  std::vector<route::Cell> forced;
  for (const route::Cell& cell : table.cells()) {
    kinds[cell.key.memory].insert({cell.key.op, cell.key.dtype});
    if (cell.key.memory == Memory::host || cell.key.op != Op::all_reduce) continue;
    for (const route::Timing& timing : cell.routes) routes.insert(timing.route.backend + "/" + timing.route.algorithm);
    forced.push_back({cell.key, {{{"shm", "ring"}, 0.5, 0.5, 0.5, 100}}, 1});
  }
  EXPECT_EQ(kinds[Memory::host].size(), 3u) << "all_reduce of two classes, and send";
  EXPECT_EQ(kinds[Memory::cuda].size(), 3u);
  EXPECT_TRUE(routes.contains("nccl/native") && routes.contains("shm/native") && routes.contains("shm/ring"));
  EXPECT_FALSE(routes.contains("nccl/ring"));
  EXPECT_TRUE(table.machine.libraries.contains("nccl") && table.machine.libraries.contains("shm"));

  EXPECT_THAT(routes_of_auto({}), Not(HasSubstr("shm,ring"))) << "the built-in order is nccl";
  for (route::Cell& cell : forced) table.put(std::move(cell));
  table.save(file("t.json"));
  EXPECT_THAT(routes_of_auto({"--table", file("t.json")}), HasSubstr("shm,ring"));
  const Ended explained = run({"explain", "--table", file("t.json"), "--op", "all_reduce", "--bytes", "64", "--ranks",
                               "2", "--memory", "cuda", "--json", "-"});
  ASSERT_EQ(explained.status, 0) << explained.err;
  const auto answer = nlohmann::json::parse(explained.out);
  EXPECT_EQ(answer["memory"], "cuda");
  EXPECT_EQ(answer["route"]["algorithm"], "ring");
}

TEST_F(MeasureCuda, WithoutADeviceItIsRefusedOnceAndClearly) {
  const std::vector<Words> commands{{"bench", "-n", "2", "--memory", "cuda"},
                                    {"bench", "-n", "2", "--memory", "cuda", "--mix", "moe"},
                                    {"tune", "-n", "2", "--memory", "cuda", "-o", file("t.json")},
                                    {"soak", "-n", "2", "--memory", "cuda", "--programs", "1"}};
  for (const Words& words : commands) {
    const Ended refused = run(words, {{"MEDLEY_CUDA", "0"}});
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(refused.err, "medley: --memory cuda: CUDA memory cannot be used here: MEDLEY_CUDA=0 switches it off\n");
  }
}

/// Exits with 0 if the rank has device 0 and, as expected, has or has not its own NCCL_HOSTID.
[[noreturn]] void be_rank(const char* local_rank, const char* launcher_variable, bool own_host) {
  setenv("MEDLEY_CUDA", "1", 1);
  setenv("MEDLEY_BACKEND_PATH", MOCK_BACKENDS, 1);
  if (std::string(launcher_variable) == "MEDLEY_LOCAL_RANK") {
    for (const auto& [name, value] : std::map<const char*, const char*>{
             {"MEDLEY_RANK", local_rank}, {"MEDLEY_WORLD_SIZE", "2"}, {"MEDLEY_STORE", "nowhere:1"}}) {
      setenv(name, value, 1);
    }
  } else {
    for (const auto& [name, value] : std::map<const char*, const char*>{{"SLURM_PROCID", local_rank},
                                                                        {"SLURM_STEP_NUM_TASKS", "2"},
                                                                        {"SLURM_JOB_ID", "1"},
                                                                        {"SLURM_STEP_ID", "0"},
                                                                        {"SLURM_STEP_NODELIST", "here"}}) {
      setenv(name, value, 1);
    }
  }
  setenv(launcher_variable, local_rank, 1);
  _exit(core::rank_device().index == 0 && (std::getenv("NCCL_HOSTID") != nullptr) == own_host ? 0 : 1);
}

TEST(RankDevice, RanksThatShareADeviceGetHostsOfTheirOwn) {
  EXPECT_EXIT(be_rank("0", "MEDLEY_LOCAL_RANK", false), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(be_rank("1", "MEDLEY_LOCAL_RANK", true), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(be_rank("1", "SLURM_LOCALID", false), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace medley

// The tuner plugin as NCCL calls it: it makes the table's algorithm the cheapest, and leaves NCCL alone where the table
// says nothing.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <filesystem>

#include "nccl_tuner/abi.hpp"
#include "route/tables.hpp"

namespace medley::nccl_tuner {
namespace {

using route::timing;
using ::testing::HasSubstr;

std::string logged;  // by the plugin, through NCCL's logger

void logger(int, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  logged += text;
}

route::Cell cuda_cell(Op op, route::Shape shape, std::int64_t bytes, std::vector<route::Timing> routes) {
  route::Cell made = route::cell(op, shape, bytes, std::move(routes));
  made.key.memory = Memory::cuda;
  return made;
}

/// A table in which all_reduce of 2 nodes is fastest as a tree with LL up to about 64 KiB, as a ring with 8 channels
/// above.
route::Table table_of_nccl() {
  route::Table table;
  table.machine = route::this_machine();
  table.put(cuda_cell(Op::all_reduce, {2, 4}, 4096,
                      {timing("nccl", "tree_ll", 10), timing("nccl", "native", 20), timing("shm+mpi", "native", 1)}));
  table.put(cuda_cell(Op::all_reduce, {2, 4}, 1 << 20,
                      {timing("nccl", "ring_simple_c8", 100), timing("nccl", "tree_ll", 300)}));
  table.put(cuda_cell(Op::broadcast, {2, 4}, 4096, {timing("nccl", "native", 10), timing("nccl", "ring_ll", 20)}));
  return table;
}

class NcclTuner : public ::testing::Test {
 protected:
  NcclTuner() : file_(std::filesystem::temp_directory_path() / fmt::format("medley_nccl_tuner_{}.json", getpid())) {
    object_ = dlopen(NCCL_TUNER_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(object_, nullptr) << dlerror();
    logged.clear();
    table_of_nccl().save(file_);
    setenv("MEDLEY_TABLE", file_.c_str(), 1);
  }
  ~NcclTuner() override {
    unsetenv("MEDLEY_TABLE");
    std::filesystem::remove(file_);
  }

  template <class Plugin>
  const Plugin& plugin(const char* symbol) {
    return *static_cast<const Plugin*>(dlsym(object_, symbol));
  }

  /// The costs after the plugin saw them, of a communicator of 8 ranks on 2 nodes.
  std::array<std::array<float, 3>, 7> costs_after(Function function, std::size_t bytes, int* channels, float cost = 5) {
    std::array<std::array<float, 3>, 7> costs;
    for (auto& row : costs) row.fill(cost);
    const auto& v5 = plugin<PluginV5>("ncclTunerPlugin_v5");
    void* context = nullptr;
    EXPECT_EQ(v5.init(&context, 1, 8, 2, logger, nullptr, nullptr), 0);
    EXPECT_EQ(
        v5.get_collective(context, function, bytes, 1, reinterpret_cast<CostTable>(costs.data()), 7, 3, 0, channels),
        0);
    EXPECT_EQ(v5.finalize(context), 0);
    return costs;
  }

  void* object_ = nullptr;
  std::filesystem::path file_;
};

int changed(const std::array<std::array<float, 3>, 7>& costs) {
  int count = 0;
  for (const auto& row : costs)
    count += static_cast<int>(std::count_if(row.begin(), row.end(), [](float cost) { return cost != 5; }));
  return count;
}

TEST_F(NcclTuner, MakesTheTablesChoiceTheCheapest) {
  int channels = 0;
  const auto small = costs_after(Function::all_reduce, 1000, &channels);
  EXPECT_EQ(small[0][0], 0);  // tree, LL
  EXPECT_EQ(changed(small), 1);
  EXPECT_EQ(channels, 0);  // NCCL's own number
  const auto large = costs_after(Function::all_reduce, std::size_t{1} << 30, &channels);
  EXPECT_EQ(large[1][2], 0);  // ring, simple
  EXPECT_EQ(channels, 8);
  EXPECT_THAT(logged, HasSubstr("all_reduce of 2 hosts x 4 ranks"));
  EXPECT_THAT(logged, HasSubstr(table_of_nccl().hash()));
}

TEST_F(NcclTuner, LeavesNcclAloneWhereItsOwnChoiceWon) {
  int channels = 0;
  EXPECT_EQ(changed(costs_after(Function::broadcast, 1000, &channels)), 0);
  EXPECT_EQ(changed(costs_after(Function::all_gather, 1000, &channels)), 0);  // not measured
}

TEST_F(NcclTuner, NeverTakesWhatNcclForbids) {
  int channels = 0;
  const auto costs = costs_after(Function::all_reduce, 1000, &channels, ignored);
  EXPECT_EQ(costs[0][0], ignored);
}

TEST_F(NcclTuner, OlderVersionsDoTheSame) {
  for (const char* symbol : {"ncclTunerPlugin_v3", "ncclTunerPlugin_v4"}) {
    std::array<std::array<float, 3>, 7> costs{};
    for (auto& row : costs) row.fill(5);
    void* context = nullptr;
    const auto& v4 = plugin<PluginV4>(symbol);  // of the same layout up to the collective
    ASSERT_EQ(v4.init(8, 2, logger, &context), 0);
    int channels = 0;
    if (std::string_view(symbol).ends_with("v3")) {
      plugin<PluginV3>(symbol).get_collective(context, Function::all_reduce, 1000, 1,
                                              reinterpret_cast<CostTable>(costs.data()), 7, 3, &channels);
    } else {
      v4.get_collective(context, Function::all_reduce, 1000, 1, reinterpret_cast<CostTable>(costs.data()), 7, 3, 0,
                        &channels);
    }
    EXPECT_EQ(costs[0][0], 0) << symbol;
    v4.destroy(context);
  }
}

TEST_F(NcclTuner, ABadTableNeverFailsAJob) {
  setenv("MEDLEY_TABLE", "/nonexistent/routes.json", 1);
  int channels = 0;
  EXPECT_EQ(changed(costs_after(Function::all_reduce, 1000, &channels)), 0);
  EXPECT_THAT(logged, HasSubstr("NCCL decides, since the route table cannot be used"));
  EXPECT_THAT(logged, HasSubstr("/nonexistent/routes.json"));
}

}  // namespace
}  // namespace medley::nccl_tuner

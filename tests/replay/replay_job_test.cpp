// A whole replay on one rank, what is refused before ranks start, and what a schedule needs to have measured.
#include "replay/replay_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "replay/replayed_step.hpp"
#include "replay/trace_folder.hpp"

namespace medley::replay {
namespace {

using ::testing::HasSubstr;

const std::string any_ranks = MEDLEY_SOURCE_DIR "/examples/schedules/dlrm.json";
const std::string two_ranks = MEDLEY_SOURCE_DIR "/tests/formats/schedule-1.json";

std::string refusal(const ReplayRequest& request, int ranks) {
  try {
    check_replay(request, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ReplayJob, TimesAStepAndRecordsIt) {
  const TraceFolder folder("");
  const ReplayRequest request{
      .schedule = any_ranks, .backends = {"shm"}, .folder = folder.path(), .steps = 2, .options = {.scale = 0.001}};
  const ReplayResult result = run_replay(request);
  EXPECT_EQ(result.ranks, 1);
  EXPECT_EQ(result.backends, (std::vector<std::string>{"shm"}));
  EXPECT_GT(result.step_us.at("shm"), 0);
  EXPECT_TRUE(result.by_parts_us.empty());
  EXPECT_TRUE(result.by_table_us.empty());
  EXPECT_EQ(result.summary.steps.steps.size(), 2u);
  const auto json = to_json(result);
  EXPECT_EQ(json["schedule"], any_ranks);
  EXPECT_EQ(json["rows"].size(), result.summary.rows.size());
  EXPECT_TRUE(json["step_us"].contains("shm"));
}

TEST(ReplayJob, RefusesBeforeRanksStart) {
  EXPECT_EQ(refusal({.schedule = two_ranks}, 2), "");
  EXPECT_EQ(refusal({.schedule = any_ranks}, 0), "");
  EXPECT_THAT(refusal({.schedule = two_ranks}, 0), HasSubstr("add -n 2"));
  EXPECT_THAT(refusal({.schedule = two_ranks}, 3), HasSubstr("run it with -n 2, not 3"));
  EXPECT_THAT(refusal({.schedule = two_ranks, .table = "nowhere.json"}, 2), HasSubstr("nowhere.json does not exist"));
  EXPECT_THAT(refusal({.schedule = "nowhere.json"}, 2), HasSubstr("cannot be opened"));
}

TEST(TraceFolder, OfItsOwnGoesWithIt) {
  std::filesystem::path path;
  {
    const TraceFolder own("");
    path = own.path();
    EXPECT_TRUE(std::filesystem::is_directory(path));
    EXPECT_EQ(TraceFolder("somewhere").path(), "somewhere");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ReplayedStep, ListsEachOperationOnceWithItsShapeAndRunsOverAnyRoutes) {
  const auto comm = [](Op op, std::int64_t bytes) {
    Action action;
    action.op = op;
    action.bytes = bytes;
    action.group = "dp";
    return action;
  };
  WorldSchedule schedule;
  schedule.world = 1;
  schedule.ranks = {{0, {{"dp", {0}}}, {comm(Op::all_reduce, 64), comm(Op::all_reduce, 64)}}};
  Context context({"shm"});
  const auto alone = schedule_as_step(schedule, {})(context);
  EXPECT_TRUE(alone->operations().empty());  // a comm of one rank needs no routes
  const std::vector<tune::StepSlot> slots;
  const std::vector<Choice> routes;
  EXPECT_NO_THROW(alone->run(tune::StepRoutes(slots, routes)));
}

}  // namespace
}  // namespace medley::replay

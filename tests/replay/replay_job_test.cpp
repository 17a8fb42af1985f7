// A whole replay on one rank, what is refused before ranks start, and what a schedule needs to have measured.
#include "replay/replay_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "replay/needed_operations.hpp"
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
  const ReplayRequest request{.schedule = any_ranks,
                              .backends = {"shm"},
                              .folder = folder.path(),
                              .steps = 2,
                              .options = {.scale = 0.001}};
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
  EXPECT_THAT(refusal({.schedule = two_ranks, .table = "nowhere.json"}, 2),
              HasSubstr("nowhere.json does not exist"));
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

TEST(NeededOperations, AreEachOnceAndReceivesCountAsSends) {
  const auto comm = [](Op op, std::int64_t bytes) {
    Action action;
    action.op = op;
    action.bytes = bytes;
    return action;
  };
  WorldSchedule schedule;
  Action compute;
  compute.kind = Kind::compute;
  schedule.ranks = {{0, {}, {comm(Op::send, 8), compute, comm(Op::all_reduce, 64), comm(Op::all_reduce, 64)}},
                    {1, {}, {comm(Op::recv, 8), comm(Op::all_reduce, 128)}}};
  const auto needed = needed_operations(schedule);
  ASSERT_EQ(needed.size(), 3u);
  EXPECT_EQ(needed[0].op, Op::send);
  EXPECT_EQ(needed[1].bytes, 64);
  EXPECT_EQ(needed[2].bytes, 128);
}

}  // namespace
}  // namespace medley::replay

// A file of every kind written by an older version is still readable, and an unsupported format number is refused with
// a sentence that names the file, the numbers and what to do. The files beside this one are never rewritten: a new
// format number adds one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <medley/error.hpp>

#include "base/format_version.hpp"
#include "cost/calibration.hpp"
#include "cost/machine.hpp"
#include "replay/schedule_file.hpp"
#include "route/table.hpp"
#include "trace/trace.hpp"

namespace medley {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

fs::path sample(const std::string& name) { return fs::path(MEDLEY_FORMATS) / name; }

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What `read` reports about a copy of the sample modified by `change`.
template <typename Change, typename Read>
std::string refusal(const std::string& name, const Change& change, const Read& read) {
  const fs::path copy = fs::path(testing::TempDir()) / ("other-" + name);
  std::string bytes = content(sample(name));
  EXPECT_FALSE(bytes.empty()) << name;
  change(bytes);
  std::ofstream(copy, std::ios::binary) << bytes;
  std::string said = "nothing";
  try {
    read(copy.string());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid);
    said = error.what();
  }
  fs::remove(copy);
  return said;
}

auto replaced(const std::string& from, const std::string& to) {
  return [=](std::string& bytes) {
    const std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    bytes.replace(at, from.size(), to);
  };
}

/// The number of a record file is in bytes 8 to 11.
auto numbered(std::uint32_t number) {
  return [=](std::string& bytes) { std::memcpy(bytes.data() + 8, &number, sizeof number); };
}

auto names(const std::string& file, const std::string& what, const std::string& numbers, const std::string& remedy) {
  return AllOf(HasSubstr("other-" + file), HasSubstr(what), HasSubstr("this version reads format" + numbers),
               HasSubstr(remedy));
}

constexpr core::FileFormat ladder{"ladder", 2, 4, "build it again"};

TEST(Formats, EveryNumberFromTheOldestToTheCurrentIsRead) {
  for (const int number : {2, 3, 4}) EXPECT_NO_THROW(core::check_format(ladder, "here", number));
  for (const int number : {0, 1, 5}) EXPECT_THROW(core::check_format(ladder, "here", number), Error);
}

TEST(Formats, TheSentenceNamesFileNumberNumbersAndRemedy) {
  try {
    core::check_format(ladder, "barn/l.txt", 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "barn/l.txt: this ladder has format 1, which an older version of Medley wrote; this version "
                 "reads formats 2 to 4; use "
                 "that version or build it again");
  }
}

TEST(Formats, RouteTable) {
  for (const char* file : {"routes-1.json", "routes-2.json"}) {
    const route::Table table = route::Table::load(sample(file));
    ASSERT_EQ(table.cells().size(), 2u);
    EXPECT_EQ(table.cells()[0].key.op, Op::all_reduce);
    EXPECT_EQ(table.cells()[0].routes.front().route.backend, "shm");
  }
  EXPECT_TRUE(route::Table::load(sample("routes-1.json")).fusion().empty());
  EXPECT_EQ(route::Table::load(sample("routes-2.json")).fusion_limit(Memory::host, {1, 4}), 16384);
  EXPECT_THAT(refusal("routes-2.json", replaced("\"medley_routes\": 2", "\"medley_routes\": 3"), route::Table::load),
              names("routes-2.json", "this route table has format 3, which a newer version", "s 1 to 2;",
                    "measure again with medley tune"));
}

TEST(Formats, RouteTableOfAStep) {
  const route::Table table = route::Table::load(sample("routes-2.json"));
  ASSERT_TRUE(table.step);
  EXPECT_EQ(table.step->name, "moe");
  EXPECT_EQ(table.step->best_library()->name, "ucx");
  EXPECT_FALSE(table.step->routes.empty());
}

TEST(Formats, Trace) {
  const trace::Trace t = trace::open_trace(sample("trace-3").string());
  ASSERT_EQ(t.ranks.size(), 2u);
  EXPECT_EQ(t.ranks[0].issued, 14);
  EXPECT_EQ(t.ranks[0].events->size(), 14u);
  trace::Event event;
  ASSERT_TRUE(t.ranks[0].events->read(13, event));
  EXPECT_EQ(t.groups[event.group].ranks, (std::vector<int>{0, 1}));
  EXPECT_THAT(
      refusal("ring-3.trace", numbered(2), trace::open_trace),
      names("ring-3.trace", "this trace has format 2, which an older version", "s 3 to 4;", "record the run again"));
  EXPECT_THAT(refusal("ring-3.trace", numbered(5), trace::open_trace),
              HasSubstr("has format 5, which a newer version"));
}

TEST(Formats, RingWithDecisions) {
  const trace::Trace t = trace::open_trace(sample("ring-4.trace").string());
  EXPECT_EQ(t.ranks[0].events->size(), 8u);
  ASSERT_EQ(t.decisions.size(), 1u);
  EXPECT_EQ(t.decisions[0].op, Op::all_reduce);
  EXPECT_EQ(t.decisions[0].sequence, 118u);
  EXPECT_EQ(t.decisions[0].to, "shm+gloo");
  EXPECT_TRUE(t.decisions[0].changed);
  EXPECT_THAT(refusal("ring-4.trace", replaced("\"sequence\":118", "\"sequence\":\"x\""), trace::open_trace),
              HasSubstr("does not say what was decided"));
}

TEST(Formats, Ring) {
  const trace::Trace t = trace::open_trace(sample("ring-3.trace").string());
  ASSERT_EQ(t.ranks.size(), 1u);
  EXPECT_EQ(t.ranks[0].issued, 23612);
  ASSERT_EQ(t.ranks[0].events->size(), 8u);  // the last ones
  trace::Event event;
  ASSERT_TRUE(t.ranks[0].events->read(7, event));
  EXPECT_EQ(event.op, Op::all_reduce);
  EXPECT_EQ(event.sequence, 23612u);
}

TEST(Formats, Schedule) {
  const replay::WorldSchedule schedule = replay::read_schedule(sample("schedule-1.json").string());
  EXPECT_EQ(schedule.world, 2);
  EXPECT_EQ(schedule.ranks.size(), 2u);
  EXPECT_THAT(
      refusal("schedule-1.json", replaced("medley.schedule/1", "medley.schedule/12"), replay::read_schedule),
      names("schedule-1.json", "this schedule has format 12, which a newer version", " 1;", "medley plan --schedule"));
  EXPECT_THAT(refusal("schedule-1.json", replaced("medley.schedule/1", "medley.schedule/x"), replay::read_schedule),
              HasSubstr("is no schedule"));
}

TEST(Formats, MachineFileWithoutANumber) {
  const cost::Machine machine = cost::find_machine(sample("machine-1.toml").string());
  EXPECT_EQ(machine.gpu.name, "a100-80-sxm");
  EXPECT_THAT(refusal("machine-1.toml", replaced("gpu = ", "format = 2\ngpu = "), cost::find_machine),
              names("machine-1.toml", "this machine file has format 2, which a newer version", " 1;",
                    "write the machine again"));
  EXPECT_THAT(refusal("machine-1.toml", replaced("gpu = ", "format = 1.5\ngpu = "), cost::find_machine),
              HasSubstr("whole number"));
  EXPECT_EQ(refusal("machine-1.toml", replaced("gpu = ", "format = 1\ngpu = "), cost::find_machine), "nothing");
}

TEST(Formats, CalibrationWithoutANumber) {
  const auto read = [](const std::string& path) { return cost::calibrated_model(cost::find_gpu("h200-sxm"), path); };
  EXPECT_TRUE(read(sample("calibration-1.json").string()).calibrated());
  EXPECT_THAT(
      refusal("calibration-1.json", replaced("{\"gpu\"", "{\"format\": 7, \"gpu\""), read),
      names("calibration-1.json", "this calibration has format 7, which a newer version", " 1;", "medley shape bench"));
  EXPECT_EQ(refusal("calibration-1.json", replaced("{\"gpu\"", "{\"format\": 1, \"gpu\""), read), "nothing");
}

}  // namespace
}  // namespace medley

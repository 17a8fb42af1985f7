// A step of a trace as a schedule: what is computed, issued and awaited, in which order, and what cannot become one.
#include "trace/export_schedule.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "trace/steps.hpp"

namespace medley::trace {
namespace {

/// A trace of `ranks` ranks whose events the test adds by hand, in microseconds.
struct Made {
  Trace trace;
  std::vector<std::shared_ptr<EventList>> lists;

  explicit Made(int ranks) {
    trace.source = "run";
    trace.world = ranks;
    for (int r = 0; r < ranks; ++r) {
      lists.push_back(std::make_shared<EventList>());
      RankTrace rank;
      rank.rank = r;
      rank.events = lists.back();
      trace.ranks.push_back(std::move(rank));
    }
  }
  Event& add(int rank, Op op, std::int64_t bytes, double issued, double completed,
             const std::string& scope = "backward/mlp") {
    Event event;
    event.op = op;
    event.dtype = DType::f32;
    event.bytes = bytes;
    event.scope = trace.name(scope);
    event.group = trace.group({"world", {0, 1}, 2});
    event.issued = event.started = 1e3 * issued;
    event.completed = 1e3 * completed;
    event.exposed = 0;
    lists[static_cast<std::size_t>(rank)]->events.push_back(event);
    ++trace.ranks[static_cast<std::size_t>(rank)].issued;
    return lists[static_cast<std::size_t>(rank)]->events.back();
  }
  /// An operation between two steps.
  void separator(double at) {
    for (int r = 0; r < trace.world; ++r) add(r, Op::barrier, 0, at, at, std::string(step_scope));
  }
};

std::vector<std::string> kinds(const nlohmann::ordered_json& rank) {
  std::vector<std::string> out;
  for (const auto& entry : rank["entries"]) {
    const std::string kind = entry["kind"];
    out.push_back(kind == "comm"   ? std::string(entry["op"])
                  : kind == "wait" ? "wait " + entry["token"].dump()
                                   : entry["us"].dump());
  }
  return out;
}

std::string refusal(const Trace& trace) {
  try {
    schedule_json(trace);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TracedSchedule, ComputesIssuesAndWaitsAsTheProgramDid) {
  Made made(2);
  made.separator(100);
  for (int r = 0; r < 2; ++r) {
    Event& early = made.add(r, Op::all_reduce, 64, 130, 150);  // complete long before anybody waits
    early.async = true;
    Event& late = made.add(r, Op::all_gather, 32, 160, 220);
    late.async = true;
    late.exposed = 40e3;  // from 180 on the program waits
    made.add(r, Op::broadcast, 8, 230, 250).exposed = 20e3;
    made.add(r, Op::reduce, 16, 255, 275).async = true;  // nobody is seen to wait for it
  }
  made.separator(300);
  const auto schedule = schedule_json(made.trace);
  EXPECT_EQ(schedule["schema"], "medley.schedule/1");
  EXPECT_EQ(schedule["world"], 2);
  ASSERT_EQ(schedule["ranks"].size(), 2u);
  const std::vector<std::string> expected{"30.0", "all_reduce", "30.0", "all_gather", "20.0", "wait 2", "wait 1",
                                          "10.0", "broadcast",  "5.0",  "reduce",     "45.0", "wait 4"};
  for (const auto& rank : schedule["ranks"]) EXPECT_EQ(kinds(rank), expected);
  const auto& entry = schedule["ranks"][0]["entries"][1];
  EXPECT_EQ(entry["bytes"], 64);
  EXPECT_EQ(entry["dtype"], "f32");
  EXPECT_EQ(entry["phase"], "backward");
  EXPECT_EQ(entry["module"], "mlp");
  EXPECT_EQ(schedule["ranks"][1]["groups"]["world"], (std::vector<int>{0, 1}));
}

TEST(TracedSchedule, TakesTheStepOfMedianLength) {
  Made made(2);
  double now = 1;
  made.separator(now);
  for (const double length : {500.0, 20.0, 30.0}) {
    for (int r = 0; r < 2; ++r) made.add(r, Op::all_reduce, static_cast<std::int64_t>(length), now, now + length);
    made.separator(now += length + 1);
  }
  const auto schedule = schedule_json(made.trace);
  EXPECT_EQ(schedule["note"], "step 3 of run");
  EXPECT_EQ(schedule["ranks"][0]["entries"][0]["bytes"], 30);
}

TEST(TracedSchedule, GivesVCollectivesTheLargestSizeOnAllRanks) {
  Made made(2);
  made.add(0, Op::all_to_allv, 100, 10, 20);
  made.add(1, Op::all_to_allv, 300, 10, 20);
  const auto schedule = schedule_json(made.trace);
  for (const auto& rank : schedule["ranks"]) EXPECT_EQ(rank["entries"].back()["bytes"], 300);
}

TEST(TracedSchedule, KeepsOverlappingGroupsOfOneNameApart) {
  Made made(3);
  const auto pair = [&](int rank, int a, int b) {
    made.add(rank, Op::all_reduce, 8, 10, 20).group = made.trace.group({"pair", {a, b}, 2});
  };
  pair(0, 0, 1);
  pair(1, 0, 1);
  pair(1, 1, 2);
  pair(2, 1, 2);
  const auto schedule = schedule_json(made.trace);
  EXPECT_EQ(schedule["ranks"][1]["groups"].size(), 2u);
}

TEST(TracedSchedule, IsRefusedWhereTheTraceDoesNotSayEnough) {
  Made differs(2);
  differs.add(0, Op::all_reduce, 8, 10, 20);
  differs.add(1, Op::broadcast, 8, 10, 20);
  EXPECT_NE(refusal(differs.trace).find("collective 1 of the step in group world differs between ranks 0 and 1"),
            std::string::npos);

  Made silent(2);  // rank 1 is a member and calls nothing
  silent.add(0, Op::all_reduce, 8, 10, 20);
  silent.add(1, Op::send, 8, 10, 20).peer = 0;
  EXPECT_NE(refusal(silent.trace).find("collective 1 of the step in group world differs between ranks 0 and 1"),
            std::string::npos);

  Made outside(2);
  for (int r = 0; r < 2; ++r)
    outside.add(r, Op::all_reduce, 8, 10, 20).group = outside.trace.group({"odd", {0, 1, 7}, 3});
  EXPECT_NE(refusal(outside.trace).find("group odd names rank 7 of 2"), std::string::npos);

  Made lost(2);
  lost.add(0, Op::all_reduce, 8, 10, 20);
  lost.trace.ranks.pop_back();
  EXPECT_NE(refusal(lost.trace).find("the trace of rank 1 is missing"), std::string::npos);

  Made from_anybody(2);
  from_anybody.add(0, Op::recv, 8, 10, 20);
  from_anybody.add(1, Op::send, 8, 10, 20).peer = 0;
  EXPECT_NE(refusal(from_anybody.trace).find("with whom there was the recv"), std::string::npos);

  Made unfinished(2);
  for (int r = 0; r < 2; ++r) unfinished.add(r, Op::all_reduce, 8, 10, -1);
  EXPECT_NE(refusal(unfinished.trace), "");

  Made foreign(2);
  foreign.trace.waits_known = false;
  EXPECT_NE(refusal(foreign.trace).find("when the program waited"), std::string::npos);
}

}  // namespace
}  // namespace medley::trace

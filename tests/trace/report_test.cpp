// What `medley trace` and `medley watch` say, as values: of a small recording, and of rows made by hand.
#include "trace/report.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "trace/watch_job.hpp"

namespace medley::trace {
namespace {

const std::string recorded = MEDLEY_FORMATS "/trace-3";  // two ranks, two steps of three all_reduces

Row row(std::int64_t bytes, std::int64_t count, const std::string& module, double us = 1) {
  Row r;
  r.bytes = bytes;
  r.count = r.timed = count;
  r.module = module;
  r.median_us = us;
  r.total_us = us * static_cast<double>(count);
  return r;
}

TEST(Report, HoldsTheStepItsTotalsAndItsLayout) {
  const Report report = make_report({.path = recorded});
  EXPECT_EQ(report.summary.steps.steps.size(), 2u);
  EXPECT_EQ(report.summary.rows.size(), 3u);
  ASSERT_EQ(report.totals.size(), 1u);
  EXPECT_EQ(report.totals.begin()->second.count, 3);
  EXPECT_EQ(report.sizes.count, 3);
  EXPECT_EQ(report.layout.dp, 2);
  EXPECT_TRUE(report.problems.list.empty());
  const auto json = to_json(report);
  EXPECT_EQ(json["ranks_traced"], 2);
  EXPECT_EQ(json["rows"].size(), 3u);
  EXPECT_EQ(json["small"]["limit"], 64 * 1024);
  EXPECT_EQ(json["layout"]["text"], "dp=2");
}

/// Opening a pipe without a writer would wait forever.
TEST(Report, OfAPipeIsRefused) {
  std::string folder = "/tmp/medley-pipe-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(make_report({.path = pipe}), Error);
  unlink(pipe.c_str());
  rmdir(folder.c_str());
}

TEST(Report, OfARankThatIsNotThereIsRefused) { EXPECT_THROW(make_report({.path = recorded, .rank = 7}), Error); }

/// Two steps of two all_reduces on one rank; each waits 10 µs for its start and transfers for 20, or for 40 in the
/// second step.
Trace two_steps() {
  Trace trace;
  trace.world = 2;
  auto list = std::make_shared<EventList>();
  double now = 1000;
  for (int i = 0; i < 4; ++i) {
    Event event;
    event.bytes = 64;
    event.group = trace.group({"dp", {0, 1}, 2});
    event.scope = trace.name("");
    event.issued = now;
    event.started = now + 10'000;
    event.completed = event.started + (i < 2 ? 20'000 : 40'000);
    event.exposed = event.completed - event.issued;
    now = event.completed + 5'000;
    list->events.push_back(event);
  }
  RankTrace rank;
  rank.issued = 4;
  rank.events = std::move(list);
  trace.ranks.push_back(std::move(rank));
  return trace;
}

TEST(Summary, TimesAreTheTransfersAndTotalsAreOfOneStep) {
  const Trace trace = two_steps();
  const Summary summary = summarise(trace, trace.ranks[0], find_steps(trace, trace.ranks[0], 2));
  ASSERT_EQ(summary.rows.size(), 1u);
  EXPECT_EQ(summary.rows[0].count, 2);
  EXPECT_EQ(summary.rows[0].timed, 4);
  EXPECT_DOUBLE_EQ(summary.rows[0].total_us, 60)
      << "two operations at the mean of 30 µs, without the wait for their start";
  EXPECT_DOUBLE_EQ(summary.rows[0].exposed_us, 80) << "which counts as exposed";
  const auto totals = totals_of(summary.rows, trace);
  EXPECT_DOUBLE_EQ(totals.at("dp").us, 60);
  EXPECT_DOUBLE_EQ(totals.at("dp").exposed_us, 80);
  EXPECT_EQ(totals.at("dp").bytes, 128);
}

TEST(Summary, OneUnknownWaitMakesTheExposedTimeOfItsRowUnknown) {
  Trace trace = two_steps();
  const auto known = [&] {
    const std::vector<Row> rows = summarise(trace, trace.ranks[0], find_steps(trace, trace.ranks[0], 2)).rows;
    EXPECT_EQ(rows[0].exposed_known, totals_of(rows, trace).at("dp").exposed_known);
    return rows[0].exposed_known;
  };
  EXPECT_TRUE(known());
  Event& one = static_cast<EventList&>(*trace.ranks[0].events).events[3];
  one.exposed_known = false;
  EXPECT_FALSE(known());
  one.exposed_known = true;
  trace.waits_known = false;
  EXPECT_FALSE(known());
}

TEST(Summary, JsonHasNoExposedTimesWhereWaitsAreUnknown) {
  Report report = make_report({.path = recorded});
  EXPECT_TRUE(to_json(report)["rows"][0].contains("exposed_us"));
  EXPECT_TRUE(to_json(report)["rows"][0]["exposed"].is_boolean());
  for (Row& row : report.summary.rows) row.exposed_known = false;
  const auto json = to_json(report);
  EXPECT_FALSE(json["rows"][0].contains("exposed_us"));
  EXPECT_TRUE(json["rows"][0]["exposed"].is_null());
  EXPECT_TRUE(json["rows"][0].contains("total_us"));
  EXPECT_FALSE(json["totals"].begin()->contains("exposed_us"));
}

TEST(Sizes, LeaveOutWhatHasNoBytes) {
  const Sizes sizes = sizes_of({row(0, 5, "barrier"), row(1000, 3, "a"), row(4096, 1, "b")}, 1000);
  EXPECT_EQ(sizes.count, 4);
  EXPECT_DOUBLE_EQ(sizes.small_share_of_count, 0.75);
  EXPECT_DOUBLE_EQ(sizes.small_share_of_bytes, 3000.0 / 7096);
  ASSERT_EQ(sizes.histogram.size(), 2u);
  EXPECT_EQ(sizes.histogram.at(512).count, 3);
  EXPECT_EQ(sizes.histogram.at(4096).bytes, 4096);
}

TEST(Rows, ThatDifferInScopeAloneAreMerged) {
  const std::vector<Row> rows = merged({row(64, 1, "a", 1), row(64, 3, "b", 5), row(128, 1, "a", 2)});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].count, 4);
  EXPECT_EQ(rows[0].module, "…");
  EXPECT_DOUBLE_EQ(rows[0].median_us, 4);  // by how often each was timed
  EXPECT_DOUBLE_EQ(rows[0].total_us, 16);
  EXPECT_EQ(rows[1].module, "a");
}

TEST(Watch, LooksOnceAndSaysWhatIsNew) {
  int looks = 0;
  std::size_t fresh_verdicts = 0, verdicts = 0;
  const WatchResult result =
      watch({.path = recorded, .once = true}, {.looked = [&](const WatchReport& report, const auto& fresh) {
              ++looks;
              fresh_verdicts = fresh.size();
              verdicts = report.verdicts.size();
              EXPECT_EQ(to_json(report)["operations"], 28);
            }});
  EXPECT_EQ(looks, 1);
  EXPECT_EQ(fresh_verdicts, verdicts);
  EXPECT_FALSE(result.job_ended);
  EXPECT_THROW(watch({.path = recorded + "/nothing", .once = true}, {}), Error);
}

TEST(Watch, AVerdictIsNewOnce) {
  WatchReport report;
  report.verdicts = {{.kind = "late", .ranks = {1}, .group = "world", .op = "all_reduce", .sentence = "…"}};
  FreshVerdicts fresh;
  EXPECT_EQ(fresh.of(report).size(), 1u);
  EXPECT_TRUE(fresh.of(report).empty());
  report.verdicts[0].ranks = {2};
  EXPECT_EQ(fresh.of(report).size(), 1u);
  EXPECT_TRUE(fresh.of(WatchReport{}).empty());
  EXPECT_EQ(fresh.of(report).size(), 1u);  // it was gone in between
}

}  // namespace
}  // namespace medley::trace

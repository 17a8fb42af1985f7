// What `medley trace` and `medley watch` say, as values: of a small recording, and of rows made by hand.
#include "trace/report.hpp"

#include <gtest/gtest.h>

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

TEST(Report, OfARankThatIsNotThereIsRefused) {
  EXPECT_THROW(make_report({.path = recorded, .rank = 7}), Error);
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

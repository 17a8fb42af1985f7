// From files to a comparison: a recorded run against a plan, what may be ignored, and ranks with equal differences.
#include "reconcile/reconcile_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "reconcile/made_run.hpp"
#include "reconcile/report_json.hpp"

namespace medley::reconcile {
namespace {

using ::testing::HasSubstr;

const std::string recorded = MEDLEY_FORMATS "/trace-3";  // two ranks

std::string refusal(const ReconcileRequest& request) {
  try {
    run_reconcile(request);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ReconcileJob, ComparesARecordedRunWithAPlan) {
  const Plan other = test::plan_of("dp=2", plan::Framework::ddp);
  const ReconcileResult result = run_reconcile({.trace = recorded, .plan = other});
  EXPECT_EQ(result.report.ranks.size(), 2u);
  EXPECT_GT(result.report.differences(), 0u);
  const auto json = to_json(result);
  EXPECT_EQ(json["source"], recorded);
  EXPECT_EQ(json["ranks"].size(), 2u);
  EXPECT_EQ(json["unexplained"], result.report.unexplained());
  EXPECT_EQ(run_reconcile({.trace = recorded, .plan = other, .options = {.selection = {.rank = 1}, .ignored = {}}})
                .report.ranks.size(),
            1u);
}

TEST(ReconcileJob, RefusesWhatDoesNotFit) {
  EXPECT_THAT(refusal({.trace = recorded}), HasSubstr("say what was expected"));
  EXPECT_THAT(refusal({.trace = recorded, .plan = test::plan_of("dp=4", plan::Framework::ddp)}),
              HasSubstr("has 4 ranks, the trace is of 2"));
  EXPECT_THAT(refusal({.trace = recorded,
                       .plan = test::plan_of("dp=2", plan::Framework::ddp),
                       .options = {.selection = {.rank = 9}, .ignored = {}}}),
              HasSubstr("no trace of rank 9"));
}

TEST(ReconcileJob, IgnoresFieldsRanksAndOutside) {
  Options options;
  for (const char* word : {"ranks", "outside", "dtype"}) ignore(word, options);
  EXPECT_TRUE(options.ignore_ranks && options.ignore_outside && options.ignored.has(trace::Field::dtype));
  EXPECT_THROW(ignore("everything", options), Error);
}

TEST(ReconcileJob, RanksThatDifferAlikeAreOneGroup) {
  const auto rank = [](int number, Verdict verdict, std::int64_t matched) {
    Line difference;
    difference.verdict = verdict;
    Line match;
    match.expected_count = match.observed_count = matched;
    return RankResult{number, 1, {StepsResult{{1}, {difference, match}}}};
  };
  Report report;
  report.ranks = {rank(0, Verdict::missing, 1), rank(1, Verdict::extra, 1), rank(2, Verdict::missing, 2)};
  const auto alike = alike_ranks(report, false);
  ASSERT_EQ(alike.size(), 2u);
  EXPECT_EQ(alike[0].ranks, (std::vector<int>{0, 2}));
  EXPECT_EQ(alike[1].ranks, (std::vector<int>{1}));
  EXPECT_EQ(alike_ranks(report, true).size(), 3u);  // the matched rows differ
}

}  // namespace
}  // namespace medley::reconcile

// The sentences of the page, what it leaves out, how the data is embedded, and how long traces are shortened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/collect.hpp"
#include "report/files.hpp"
#include "report/findings.hpp"
#include "report/page.hpp"
#include "report/timeline.hpp"

namespace medley::report {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

class Page : public ::testing::Test {
 protected:
  Json report_of(const std::map<std::string, std::string>& files) {
    fs::create_directories(folder);
    for (const auto& [name, text] : files) test::write(folder / name, text);
    return make_report(folder, "", "");
  }
  static std::vector<std::string> sentences(const Json& report, const std::string& section) {
    std::vector<std::string> all;
    for (const Json& finding : report["runs"][0]["findings"])
      if (finding["section"] == section) all.push_back(finding["sentence"]);
    return all;
  }
  static std::string sentence(const Json& report, const std::string& section) {
    const auto all = sentences(report, section);
    return all.empty() ? "" : all.front();
  }
  test::Scratch scratch;
  const fs::path folder = scratch.path() / "run";
};

TEST_F(Page, says_what_auto_gains_and_where_mixing_does_not_pay) {
  const Json report = report_of(test::samples());
  EXPECT_EQ(sentence(report, "steps"),
            "auto is 1.25× faster than the best single library (mpi) on the moe step, 4 ranks on 2 hosts. "
            "Mixing does not pay on dense (1.00×) with 4 ranks on 2 hosts.");
  EXPECT_THAT(sentence(report, "winners"),
              HasSubstr("Of 3 measured cells (operation, size, comm) the fastest route is over shm 2, mpi 1."));
  EXPECT_THAT(sentence(report, "winners"), HasSubstr("up to 4× as long (all_reduce of 64 B: mpi against shm)"));
  EXPECT_THAT(sentence(report, "shape"),
              HasSubstr("logits forward: 83 % of its 1.7 ms per step, most of it to alignment"));
}

TEST_F(Page, says_what_tuning_a_whole_step_gained) {
  std::map<std::string, std::string> files{{"routes.json", test::samples().at("routes.json")}};
  EXPECT_EQ(
      sentence(report_of(files), "steps"),
      "Tuned for the step moe: the chosen routes are 1.25× as fast as the best single library (95 % interval 1.20 to 1.30).");
  std::string& text = files["routes.json"];
  const std::string none = "\"library\": \"\"";
  text.replace(text.find(none), none.size(), "\"library\": \"mpi\"");
  EXPECT_THAT(sentence(report_of(files), "steps"), HasSubstr("no mix of libraries was surely faster than mpi alone"));
}

TEST_F(Page, says_why_programs_wait_where_times_were_compared) {
  const Json report = report_of({{"reconcile.json", test::samples().at("reconcile.json")}});
  EXPECT_EQ(
      sentences(report, "reconcile")[1],
      "In trace the program waits 1.0 ms a step for communication; 90 % of that because another rank had not called the "
      "operation yet.");
  EXPECT_EQ(report["runs"][0]["reconcile"][0]["time"]["waits"].size(), 2u);
}

TEST_F(Page, says_how_long_a_step_waits_for_communication) {
  test::write_trace(folder / "trace", 2, 64);
  EXPECT_EQ(sentence(report_of({}), "timeline"),
            "In a step of trace, rank 0 waits 60 % of 6.4 µs for communication; the largest part is "
            "all_reduce (3.4 µs).");
}

TEST_F(Page, operations_that_failed_come_first) {
  trace::test::File file;
  file.add(Op::all_reduce, 4, 4).state = core::RecordState::failed;
  const std::vector<std::byte> bytes = file.bytes();
  test::write(folder / "trace/rank-0000.trace", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Json report = report_of(test::samples());
  EXPECT_EQ(report["runs"][0]["findings"][0]["sentence"], "1 operation did not end well; the first is in trace.");
}

TEST_F(Page, an_unexplained_difference_comes_first_and_three_findings_are_headlines) {
  const Json findings = report_of(test::samples())["runs"][0]["findings"];
  EXPECT_EQ(findings[0]["section"], "reconcile");
  int headlines = 0;
  for (const Json& finding : findings) headlines += finding["headline"].get<bool>();
  EXPECT_EQ(headlines, 3);
}

TEST_F(Page, lists_what_was_not_measured_with_its_command) {
  const Json run = report_of({{"bench.json", test::samples().at("bench.json")}})["runs"][0];
  std::string all;
  for (const Json& missing : run["not_measured"]) all += missing["command"].get<std::string>() + "\n";
  EXPECT_THAT(all, HasSubstr("medley tune -n 2 -o " + folder.native() + "/routes.json"));
  EXPECT_THAT(all, HasSubstr("--memory cuda"));
  EXPECT_THAT(all, Not(HasSubstr("/bench.json")));
}

TEST_F(Page, data_cannot_end_the_script_they_are_in) {
  const Json report = report_of({{"replay.json", test::samples().at("replay.json")}});
  const std::string text = escaped(report);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(Json::parse(text), report);
  const std::string page = page_of(report);
  EXPECT_THAT(page, Not(HasSubstr("MEDLEY_REPORT_DATA")));
  EXPECT_THAT(page, HasSubstr("\\u003c/script>\\u003cimg"));
}

TEST_F(Page, asks_for_nothing_from_a_network) {
  const std::string page = page_of(report_of({}));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* outside : {"<script src", "<link rel=\"stylesheet\"", "@import", "url(http"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
}

TEST_F(Page, two_folders_are_compared_by_what_both_measured) {
  report_of(test::samples());
  std::string faster = test::samples().at("mixes.json");
  faster.replace(faster.find("\"median_us\": 800"), 16, "\"median_us\": 400");
  test::write(scratch.path() / "now/mixes.json", faster);
  const Json report = make_report((scratch.path() / "now").native(), folder.native(), "");
  ASSERT_EQ(report["runs"].size(), 2);
  EXPECT_EQ(report["changes"][0]["what"], "moe step over auto (4 ranks on 2 hosts, host memory)");
  EXPECT_EQ(report["changes"][0]["before"], 800);
  EXPECT_EQ(report["changes"][0]["after"], 400);
  EXPECT_EQ(report["changes"].size(), 6);
}

TEST_F(Page, a_long_step_is_drawn_with_few_bars_that_hold_all_operations) {
  constexpr std::size_t operations = 100000;
  test::write_trace(folder / "trace", 2, operations);
  const trace::Trace t = trace::open_trace((folder / "trace").native());
  TimelineLimits limits;
  limits.bars = 100;
  limits.pixels = 50;
  const Json timeline = timeline_json(t, 0, limits);
  ASSERT_EQ(timeline["ranks"].size(), 2);
  const std::size_t in_step =
      trace::find_steps(t, t.ranks[0]).steps[0].end - trace::find_steps(t, t.ranks[0]).steps[0].begin;
  for (const Json& rank : timeline["ranks"]) {
    std::int64_t drawn = 0;
    for (const Json& bar : rank["bars"]) drawn += bar[5].get<std::int64_t>();
    EXPECT_EQ(drawn, static_cast<std::int64_t>(in_step));
    EXPECT_LE(rank["bars"].size(), 2 * 50 + 2);
  }
}

TEST_F(Page, operations_that_overlap_are_drawn_in_lanes) {
  trace::test::File file;
  file.add(Op::all_reduce, 4, 4);
  auto& second = file.add(Op::all_to_all, 4, 4);
  second.issued = file.records[0].issued + 5;
  auto& third = file.add(Op::all_reduce, 4, 4);
  third.issued = file.records[0].completed;
  const std::vector<std::byte> bytes = file.bytes();
  test::write(folder / "trace/rank-0000.trace", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Json timeline = timeline_json(trace::open_trace((folder / "trace").native()), 0);
  const Json& bars = timeline["ranks"][0]["bars"];
  ASSERT_EQ(bars.size(), 3);
  EXPECT_EQ(bars[0][2], 0);
  EXPECT_EQ(bars[1][2], 1);
  EXPECT_EQ(bars[2][2], 0);
  EXPECT_EQ(timeline["ranks"][0]["lanes"], 2);
}

}  // namespace
}  // namespace medley::report

// The failure detector on a simulated clock: cut hosts, stopped ranks, one-way loss, outages that heal, pauses of its
// own process.
#include "control/failure_detector.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley::control {
namespace {

using namespace std::chrono_literals;
using Kind = FailureDetector::Kind;
using std::chrono::milliseconds;

/// One peer, rank 1, as its link shows it; time advances with each look().
class Detector : public testing::Test {
 protected:
  void SetUp() override { detector_.linked(1, now_); }

  struct Link {
    bool hears = true;     ///< heartbeats arrive
    bool answers = true;   ///< segments from its kernel arrive
    bool delivers = true;  ///< sent data arrives and is acknowledged
  };
  /// The findings during this time.
  std::vector<FailureDetector::Finding> pass(milliseconds time, Link link) {
    std::vector<FailureDetector::Finding> found;
    for (const auto end = now_ + time; now_ < end;) {
      now_ += 200ms;
      if (link.hears) detector_.heard(1, now_);
      if (link.answers) quiet_since_ = now_;
      if (link.delivers) acknowledged_ += 30;
      detector_.transport(
          1, {!link.delivers, acknowledged_, std::chrono::duration_cast<milliseconds>(now_ - quiet_since_)}, now_);
      for (auto& finding : detector_.look(now_)) {
        at_.push_back(now_);
        found.push_back(std::move(finding));
      }
    }
    return found;
  }
  static std::vector<Kind> kinds(const std::vector<FailureDetector::Finding>& findings) {
    std::vector<Kind> kinds;
    for (const auto& finding : findings) kinds.push_back(finding.kind);
    return kinds;
  }

  FailureDetector detector_{DetectorLimits{}};
  FailureDetector::Time now_{1h};
  FailureDetector::Time quiet_since_{1h};
  std::uint64_t acknowledged_ = 0;
  std::vector<FailureDetector::Time> at_;
};

TEST_F(Detector, says_nothing_about_a_rank_that_answers) { EXPECT_TRUE(pass(1h, {}).empty()); }

TEST_F(Detector, suspects_a_cut_host_within_a_second_and_loses_it_within_six) {
  pass(10s, {});
  const auto cut = now_;
  EXPECT_EQ(kinds(pass(10s, {.hears = false, .answers = false, .delivers = false})),
            (std::vector{Kind::suspected, Kind::lost}));
  EXPECT_LE(at_[0] - cut, 1s);
  EXPECT_GT(at_[1] - cut, 4s);
  EXPECT_LE(at_[1] - cut, 6s);
}

TEST_F(Detector, never_loses_a_stopped_rank_whose_host_answers) {
  pass(1s, {});
  const auto stopped = pass(1h, {.hears = false});
  EXPECT_EQ(kinds(stopped), std::vector{Kind::silent});
  EXPECT_NE(stopped[0].why.find("though its host answers"), std::string::npos) << stopped[0].why;
  EXPECT_EQ(kinds(pass(1s, {})), std::vector{Kind::retracted});
}

TEST_F(Detector, loses_a_host_that_is_heard_but_gets_nothing_from_here) {
  EXPECT_EQ(kinds(pass(10s, {.delivers = false})), (std::vector{Kind::suspected, Kind::lost}));
}

TEST_F(Detector, loses_a_host_that_stops_and_is_then_cut) {
  EXPECT_EQ(kinds(pass(10s, {.hears = false})), std::vector{Kind::silent});
  EXPECT_EQ(kinds(pass(10s, {.hears = false, .answers = false})), (std::vector{Kind::suspected, Kind::lost}));
}

// TCP retransmits after 0.2, 0.6, 1.4, 3 and 6.2 s: the link itself shows nothing until a second after the limit.
TEST_F(Detector, keeps_a_host_whose_outage_heals_by_the_answer_to_a_new_connection) {
  EXPECT_EQ(kinds(pass(3s, {.hears = false, .answers = false, .delivers = false})), std::vector{Kind::suspected});
  EXPECT_TRUE(detector_.wants_probe(1));
  for (int i = 0; i < 20; ++i) {
    detector_.probed(1, now_);
    for (const auto& finding : pass(400ms, {.hears = false, .answers = false, .delivers = false})) {
      EXPECT_NE(finding.kind, Kind::lost);
    }
  }
  EXPECT_NE(kinds(pass(1s, {})), std::vector{Kind::lost});
  EXPECT_FALSE(detector_.wants_probe(1));
}

TEST_F(Detector, blames_nobody_for_a_pause_of_its_own) {
  pass(1s, {});
  now_ += 60s;  // this process was stopped
  EXPECT_TRUE(detector_.look(now_).empty());
  EXPECT_TRUE(pass(1s, {}).empty());
}

TEST_F(Detector, loses_a_rank_whose_process_ended_after_the_grace_for_its_goodbye) {
  detector_.process_ended(1, now_);
  detector_.process_ended(2, now_);  // on this host, without a link
  detector_.forget(2);               // its goodbye arrived
  const auto found = pass(1s, {.hears = false});
  ASSERT_EQ(kinds(found), std::vector{Kind::lost});
  EXPECT_EQ(found[0].rank, 1);
  EXPECT_EQ(found[0].why, "its process ended");
}

TEST(DetectorLimitsText, come_from_the_environment_and_wrong_ones_are_named) {
  std::map<std::string, const char*> given{{"MEDLEY_LOST_AFTER", "30"}};
  const auto variable = [&](const char* name) -> const char* { return given.contains(name) ? given[name] : nullptr; };
  EXPECT_EQ(DetectorLimits::from(variable).lost_after, 30s);
  EXPECT_EQ(DetectorLimits::from(variable).suspect_after, 700ms);
  given["MEDLEY_LOST_AFTER"] = "1";
  EXPECT_EQ(DetectorLimits::from(variable).suspect_after, 500ms);
  given["MEDLEY_SUSPECT_AFTER"] = "2";
  EXPECT_THROW(DetectorLimits::from(variable), Error);
  for (const char* wrong : {"soon", "-1", "0", "nan", "1e9", "5s"}) {
    given["MEDLEY_LOST_AFTER"] = wrong;
    try {
      DetectorLimits::from(variable);
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("MEDLEY_LOST_AFTER=") + wrong), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace medley::control

// Commands that use all backends say that mpi is left out where MPI did not start their ranks.
#include <gmock/gmock.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command_fixture.hpp"

namespace medley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class LeftOut : public CommandTest {
 protected:
  void SetUp() override {
    const auto info = nlohmann::json::parse(run({"info", "--json", "-"}).out);
    for (const auto& backend : info["backends"])
      if (backend["available"].get<bool>()) here_.push_back(backend["name"]);
    if (std::find(here_.begin(), here_.end(), "mpi") == here_.end()) GTEST_SKIP() << "mpi is not available";
  }
  Ended bench(const std::vector<std::string>& more, const std::map<std::string, std::string>& environment = {}) const {
    std::vector<std::string> words{"bench", "-n", "2", "--op", "all_reduce", "--sizes", "4:4", "--seconds", "0.1"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, environment);
  }
  std::vector<std::string> here_;  ///< the backends that medley info calls available
};

TEST_F(LeftOut, TheLineListsTheBackendsThatMeasureMpiToo) {
  const Ended without = bench({});
  EXPECT_EQ(without.status, 0) << without.err;
  EXPECT_THAT(without.out, Not(HasSubstr("mpi")));
  const std::string advice = "mpi left out: these ranks are not started by MPI; add --backends ";
  ASSERT_THAT(without.err, HasSubstr(advice));
  const std::size_t list = without.err.find(advice) + advice.size();
  const Ended with = bench({"--backends", without.err.substr(list, without.err.find('\n', list) - list)});
  EXPECT_EQ(with.status, 0) << with.err;
  for (const std::string& backend : here_) EXPECT_THAT(with.out, HasSubstr(" " + backend + " "));
  EXPECT_THAT(with.err, Not(HasSubstr("left out")));
}

TEST_F(LeftOut, NothingIsSaidOfBackendsThatTheUserDidNotList) {
  EXPECT_THAT(bench({"--backends", "shm"}).err, Not(HasSubstr("left out")));
  EXPECT_THAT(bench({"--backends", "auto"}).err, Not(HasSubstr("left out")));
  EXPECT_THAT(bench({}, {{"MEDLEY_BACKENDS", "shm"}}).err, Not(HasSubstr("left out")));
}

TEST_F(LeftOut, SoakSaysWhatItMixedBeforeItsLastLine) {
  const Ended all = run({"soak", "-n", "2", "--programs", "1", "--valid"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(all.out, fmt::format("mixed {}\n1 programs, 0 mismatches, 0 hangs\n", fmt::join(here_, ", ")));
}

}  // namespace
}  // namespace medley::test

// Wrong options and wrong files: exit status 2 and one line on stderr that names what is wrong, before any rank starts.
#include <gmock/gmock.h>

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/command_fixture.hpp"

namespace medley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class Input : public CommandTest {
 protected:
  /// The one line that refuses these words.
  static std::string refusal(const Words& words) {
    const Ended ended = run(words);
    EXPECT_EQ(ended.status, 2) << fmt::format("{}", fmt::join(words, " "));
    EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
    return ended.err;
  }
};

TEST_F(Input, NumbersAreFiniteAndWithinTheirLimits) {
  for (const char* word : {"nan", "inf", "-1", "1e9", "x"}) {
    const std::string named = fmt::format("--seconds: \"{}\" is not a number from", word);
    EXPECT_THAT(refusal({"bench", "-n", "2", "--seconds", word}), HasSubstr(named));
    EXPECT_THAT(refusal({"tune", "-n", "2", "--seconds", word}), HasSubstr(named));
  }
  EXPECT_THAT(refusal({"replay", "step.json", "--scale", "nan"}), HasSubstr("--scale: \"nan\""));
  EXPECT_THAT(refusal({"bench", "-n", "1.5"}), HasSubstr("\"1.5\" is not a whole number from 1 to 4096"));
}

TEST_F(Input, TheHelpNamesNoTypesOfTheParser) {
  for (const char* command : {"bench", "explain", "plan", "replay", "run", "soak", "tune", "watch"}) {
    const Ended help = run({command, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, AllOf(HasSubstr(" N "), Not(HasSubstr("INT")), Not(HasSubstr("FLOAT")))) << command;
  }
}

}  // namespace
}  // namespace medley::test

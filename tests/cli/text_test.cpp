// What commands print is in words of users, not of the parser or of the sources.
#include <gmock/gmock.h>

#include <fstream>

#include "cli/command_fixture.hpp"

namespace medley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Text : public CommandTest {};

TEST_F(Text, TheHelpNamesNoTypesOfTheParser) {
  for (const char* command : {"bench", "explain", "plan", "replay", "run", "soak", "tune", "watch"}) {
    const Ended help = run({command, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, AllOf(HasSubstr(" N "), Not(HasSubstr("INT")), Not(HasSubstr("FLOAT")))) << command;
  }
}

TEST_F(Text, TablesSayInWordsWhatALibraryLacks) {
  EXPECT_THAT(run({"info"}).out, Not(HasSubstr("filled")));
  if (run({"info", "--json", "-"}).out.find("\"filled\"") == std::string::npos)
    GTEST_SKIP() << "every backend here has every operation";
  EXPECT_THAT(run({"info"}).out, HasSubstr("\nvia messages: the library lacks the operation"));
}

TEST_F(Text, ReportCountsFilesInWords) {
  const auto counted = [this] { return run({"report", file("out"), "-o", file("report.html")}).out; };
  std::filesystem::create_directories(file("out"));
  run({"info", "--json", file("out/info.json")});
  EXPECT_THAT(counted(), HasSubstr("/out: shows 1 file\n"));
  std::ofstream(file("out/notes.txt")) << "later";
  std::ofstream(file("out/more.txt")) << "later";
  std::ofstream(file("out/bench.json")) << "{";
  EXPECT_THAT(counted(), HasSubstr("/out: shows 1 file, 2 files left out, 1 file that cannot be read\n"
                                   "  cannot read bench.json: it is not JSON from byte 2 on\n"));
}

}  // namespace
}  // namespace medley::test

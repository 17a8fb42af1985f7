// Wrong options and wrong files: exit status 2 and one line on stderr that names what is wrong, before any rank starts.
#include <gmock/gmock.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "cli/command_fixture.hpp"
#include "route/table.hpp"

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

TEST_F(Input, ATableToFollowIsReadable) {
  std::ofstream(file("binary.json")) << "{\"medley_routes\": 1, \"machine\": \"\xff";
  for (const std::string& table : {file("binary.json"), file("none.json"), file("")}) {
    const auto names_the_table = AllOf(HasSubstr(table), Not(HasSubstr("json.exception")));
    EXPECT_THAT(refusal({"bench", "-n", "2", "--table", table}), names_the_table);
    EXPECT_THAT(refusal({"explain", "--op", "barrier", "--bytes", "0", "--ranks", "2", "--table", table}),
                names_the_table);
  }
  const Ended ended = run({"bench", "-n", "2", "--backends", "shm", "--op", "barrier"}, {{"MEDLEY_TABLE", "\xff"}});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("does not exist (on ranks 0, 1)")) << "names of files need not be UTF-8";
}

TEST_F(Input, WhereNoTableIsNamedItIsThatOfContexts) {
  const Words words{"explain", "--op", "barrier", "--bytes", "0", "--ranks", "2"};
  EXPECT_THAT(refusal(words), HasSubstr("there is no route table " + file("medley/routes.json")));
  route::Table empty;
  empty.machine = route::this_machine();
  empty.save(file("medley/routes.json"));
  EXPECT_THAT(run(words).out, HasSubstr("table " + file("medley/routes.json")));
  empty.save(file("other.json"));
  EXPECT_THAT(run(words, {{"MEDLEY_TABLE", file("other.json")}}).out, HasSubstr("table " + file("other.json")));
  EXPECT_THAT(run(words, {{"MEDLEY_TABLE", ""}}).err, HasSubstr("MEDLEY_TABLE is empty"));
  EXPECT_THAT(run(words, {{"MEDLEY_TABLE", file("no.json")}}).err,
              HasSubstr("MEDLEY_TABLE names " + file("no.json") + ", which does not exist"));
}

TEST_F(Input, ATableToWriteIsTriedBeforeMeasuring) {
  std::ofstream(file("empty.json")) << "{}";
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", "/proc/x.json"}), HasSubstr("cannot write /proc/x.json"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", file("empty.json")}), HasSubstr("\"medley_routes\" is missing"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", file("")}), HasSubstr("is not a file"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", ""}), HasSubstr("--output: the name is empty"));
  route::Table far;
  far.machine.cpu = "abacus";
  far.machine.cores = 10;
  far.save(file("far.json"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", file("far.json")}), HasSubstr("is the table of another machine"));
  for (const char* command : {"bench", "tune", "soak"})
    EXPECT_THAT(refusal({command, "-n", "2", "--json", "/proc/x.json"}), HasSubstr("cannot write /proc/x.json"));
}

TEST_F(Input, ATryToWriteLeavesEverythingAsItIs) {
  namespace fs = std::filesystem;
  const std::string link = file("link.json"), target = file("target.json"), taken = file("taken");
  fs::create_symlink(target, link);
  fs::create_directory(taken);
  EXPECT_THAT(refusal({"bench", "-n", "2", "--json", link, "--csv", taken}),
              HasSubstr("cannot write " + taken + ": Is"));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_FALSE(fs::exists(target));
  EXPECT_THAT(refusal({"bench", "-n", "2", "--json", file("none/x")}), HasSubstr("its folder does not exist"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", file("new/t.json"), "--json", "/proc/x"}), HasSubstr("/proc/x"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "-o", file("new/")}), HasSubstr("cannot write " + file("new/")));
  EXPECT_FALSE(fs::exists(file("new")));
  EXPECT_THAT(refusal({"tune", "-n", "2", "--export", "openmpi", "-o", file("none/x")}), HasSubstr("cannot write"));
}

TEST_F(Input, AScheduleIsAFileAndHasSeveralRanks) {
  EXPECT_THAT(refusal({"replay", "-n", "2", file("")}), HasSubstr("is a folder"));
  EXPECT_THAT(refusal({"tune", "-n", "2", "--for", file("")}), HasSubstr("is a folder"));
  EXPECT_THAT(refusal({"tune", "--for", "moe"}), HasSubstr("tuning for moe needs several ranks; add -n 2"));
}

TEST_F(Input, BackendsAreLibrariesThatWorkHere) {
  EXPECT_THAT(refusal({"tune", "-n", "2", "--backends", "shm,auto"}), HasSubstr("leave auto out"));
  if (run({"info"}).out.find("this machine has no NVIDIA driver") == std::string::npos)
    GTEST_SKIP() << "every backend works here";
  for (const char* command : {"bench", "tune", "soak"})
    EXPECT_THAT(refusal({command, "-n", "2", "--backends", "shm,nccl"}),
                HasSubstr("--backends nccl: this machine has no NVIDIA driver"));
}

TEST_F(Input, OptionsWithoutEffectAreRefused) {
  const auto refused = [](const Words& words) {
    EXPECT_THAT(refusal(words), AllOf(HasSubstr(words[words.size() - 2]), HasSubstr("has no effect with")));
  };
  for (const char* option : {"--op", "--compress"})
    refused({"tune", "-n", "2", "--for", "moe", option, option == std::string("--op") ? "barrier" : "int8"});
  for (const char* option : {"--scale", "--tflops"}) {
    refused({"tune", "-n", "2", "--for", "moe", option, "2"});
    refused({"explain", "--table", file("t.json"), "--step", "moe", option, "2"});
  }
  for (const char* option : {"--op", "--sizes", "--dtype"}) refused({"bench", "-n", "2", "--mix", "moe", option, "x"});
  refused({"tune", "--table", file("t.json"), "-o", file("o"), "--export", "ucc", "--backends", "ucx"});
}

}  // namespace
}  // namespace medley::test

// medley run: starting ranks, their environment, and the forwarding of their output.
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/process.hpp"

namespace medley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<std::string> run(std::vector<std::string> words) {
  words.insert(words.begin(), {MEDLEY_COMMAND, "run"});
  return words;
}

std::multiset<std::string> lines(const std::string& text) {
  std::multiset<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.insert(line);
  return all;
}

TEST(Run, TellsEachRankItsPlaceAndPrefixesItsLines) {
  Process job(run({"-n", "3", "--backends", "shm", "--", "sh", "-c",
                   "echo $MEDLEY_RANK/$MEDLEY_WORLD_SIZE $MEDLEY_LOCAL_RANK $MEDLEY_BACKENDS; echo oops >&2"}));
  job.finish();
  EXPECT_EQ(job.status, 0);
  EXPECT_EQ(lines(job.out), lines("[0] 0/3 0 shm\n[1] 1/3 1 shm\n[2] 2/3 2 shm\n"));
  EXPECT_EQ(lines(job.err), lines("[0] oops\n[1] oops\n[2] oops\n"));
}

TEST(Run, RanksMeetThroughItsStore) {
  Process job(run({"-n", "4", MEDLEY_MEET}));
  job.finish();
  EXPECT_EQ(job.status, 0) << job.err;
  EXPECT_EQ(lines(job.out), lines("[0] rank 0 of 4 met 0 1 2 3\n[1] rank 1 of 4 met 0 1 2 3\n"
                                  "[2] rank 2 of 4 met 0 1 2 3\n[3] rank 3 of 4 met 0 1 2 3\n"));
}

TEST(Run, AJobInsideAJobIsItsOwn) {
  Process job(run({"-n", "2", "--", MEDLEY_COMMAND, "run", "-n", "2", MEDLEY_MEET}));
  job.finish();
  EXPECT_EQ(job.status, 0) << job.err;
  EXPECT_EQ(lines(job.out).count("[1] [0] rank 0 of 2 met 0 1"), 1u) << job.out;
}

TEST(Run, RanksStartedByHandMeetOnLoopbackWithoutAToken) {
  const std::string store = "127.0.0.1:" + std::to_string(20000 + getpid() % 10000);
  Process one({MEDLEY_MEET}, {{"MEDLEY_RANK", "1"}, {"MEDLEY_WORLD_SIZE", "2"}, {"MEDLEY_STORE", store}});
  Process zero({MEDLEY_MEET}, {{"MEDLEY_RANK", "0"}, {"MEDLEY_WORLD_SIZE", "2"}, {"MEDLEY_STORE", store}});
  EXPECT_EQ(zero.line(), "rank 0 of 2 met 0 1");
  EXPECT_EQ(one.line(), "rank 1 of 2 met 0 1");
}

TEST(Run, AMisspeltVariableIsNamedOnceInAJob) {
  const std::string said = "medley: MEDLEY_BACKEND is not known; did you mean MEDLEY_BACKENDS?\n";
  const std::map<std::string, std::string> misspelt = {{"MEDLEY_BACKEND", "mpi"}};
  Process job(run({"-n", "2", "--", MEDLEY_MASKS, "shm"}), misspelt);
  job.finish();
  EXPECT_EQ(job.err, said);
  Process command({MEDLEY_COMMAND, "list", "ops"}, misspelt);
  command.finish();
  EXPECT_EQ(command.err, said);
  const auto by_hand = [&](const char* rank) {
    auto variables = misspelt;
    variables.merge(
        std::map<std::string, std::string>{{"MEDLEY_RANK", rank},
                                           {"MEDLEY_WORLD_SIZE", "2"},
                                           {"MEDLEY_STORE", "127.0.0.1:" + std::to_string(20000 + getpid() % 10000)}});
    return variables;
  };
  Process zero({MEDLEY_MASKS, "shm"}, by_hand("0")), one({MEDLEY_MASKS, "shm"}, by_hand("1"));
  zero.finish();
  one.finish();
  EXPECT_EQ(zero.err, said);
  EXPECT_EQ(one.err, "");
}

TEST(Run, TheProgramsOwnOptionsAreLeftToIt) {
  Process plain(run({"-n", "1", "echo", "-n", "a", "--help", "--", "b"}));
  plain.finish();
  EXPECT_EQ(plain.out, "[0] a --help -- b\n");
  Process marked(run({"--nproc-per-node", "1", "--", "echo", "-n", "a", "--", "b"}));
  marked.finish();
  EXPECT_EQ(marked.out, "[0] a -- b\n");
}

TEST(Run, WithoutPrefixOutputComesAsItIs) {
  Process job(run({"-n", "1", "--no-prefix", "--", "printf", "a\\nb"}));
  job.finish();
  EXPECT_EQ(job.out, "a\nb");
}

TEST(Run, LongLinesOfSeveralRanksStayWhole) {
  Process job(run({"-n", "4", "--", "sh", "-c",
                   "for i in 1 2 3 4 5 6 7 8; do head -c 300000 /dev/zero | tr '\\0' $MEDLEY_RANK; echo; done"}));
  job.finish();
  EXPECT_EQ(job.status, 0);
  const auto all = lines(job.out);
  ASSERT_EQ(all.size(), 32u);
  for (char rank = '0'; rank < '4'; ++rank) {
    EXPECT_EQ(all.count(std::string("[") + rank + "] " + std::string(300000, rank)), 8u);
  }
}

TEST(Run, NoOutputIsLostAtTheEnd) {
  Process job(run({"-n", "3", "--", "sh", "-c", "seq 1 20000; printf last"}));
  job.finish();
  const auto all = lines(job.out);
  EXPECT_EQ(all.size(), 3u * 20001);
  EXPECT_EQ(all.count("[2] last"), 1u);
}

TEST(Run, OutputOfAPipelineThatOutlivesItsRankIsWaitedFor) {
  Process job(run({"-n", "1", "--", "bash", "-c", "exec > >(cat); echo through another process"}));
  job.finish();
  EXPECT_EQ(job.out, "[0] through another process\n");
}

TEST(Run, StandardInputIsRankZeros) {
  const std::string path = testing::TempDir() + "/medley-run-input-" + std::to_string(getpid());
  std::ofstream(path) << "hello\n";
  Process job(run({"-n", "2", "cat"}), {}, path);
  job.finish();
  unlink(path.c_str());
  EXPECT_EQ(job.out, "[0] hello\n");
}

TEST(Run, WhoStopsReadingEndsTheWriters) {
  Process job(run({"-n", "2", "yes"}));
  EXPECT_THAT(job.line(), HasSubstr("] y"));
  job.close_output();
  job.finish();
  EXPECT_EQ(job.status, 128 + SIGPIPE) << job.err;
}

TEST(Run, BadUsageIsStatusTwoWithOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"-n", "2"}, "PROGRAM"},
      {{"-n", "0", "true"}, "0"},
      {{"-n", "two", "true"}, "two"},
      {{"--bakends", "shm", "true"}, "--bakends"},
      {{"-n", "2", "no-such-program"}, "no-such-program"},
      {{"-n", "2", "./no-such-program"}, "./no-such-program"},
      {{"-n", "2", "/etc/passwd"}, "/etc/passwd"},
      {{"-n", "2", "/etc"}, "/etc"},
      {{"--grace", "-1", "true"}, "-1"},
  };
  for (const auto& [words, named] : cases) {
    Process job(run(words));
    job.finish();
    EXPECT_EQ(job.status, 2) << named;
    EXPECT_THAT(job.err, HasSubstr(named));
    EXPECT_EQ(std::count(job.err.begin(), job.err.end(), '\n'), 1) << job.err;
    EXPECT_EQ(job.out, "");
  }
}

TEST(Run, AScriptWithoutItsInterpreterIsStatusTwo) {
  const std::string path = testing::TempDir() + "/medley-run-script-" + std::to_string(getpid());
  std::ofstream(path) << "#!/no/such/interpreter\n";
  chmod(path.c_str(), 0755);
  Process job(run({"-n", "2", path}));
  job.finish();
  unlink(path.c_str());
  EXPECT_EQ(job.status, 2);
  EXPECT_THAT(job.err, HasSubstr("interpreter"));
}

TEST(Run, HelpShowsAnExample) {
  Process job(run({"--help"}));
  job.finish();
  EXPECT_EQ(job.status, 0);
  EXPECT_THAT(job.out, HasSubstr("medley run -n 4"));
}

}  // namespace
}  // namespace medley::test

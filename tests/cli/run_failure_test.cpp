// medley run: failing ranks, signals, and the death of the launcher itself.
#include <gmock/gmock.h>

#include <sys/stat.h>

#include "cli/process.hpp"

namespace medley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// sh runs `script` on each rank.
std::vector<std::string> run(std::vector<std::string> options, const std::string& script) {
  std::vector<std::string> words = {MEDLEY_COMMAND, "run"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", "sh", "-c", script});
  return words;
}

// "[1] pid 4711" gives 4711.
pid_t pid_in(const std::string& line) { return static_cast<pid_t>(std::stol(line.substr(line.rfind(' ')))); }

TEST(RunFailure, TheFirstFailingRanksStatusIsTheJobs) {
  Process job(run({"-n", "3", "--grace", "0"}, "[ $MEDLEY_RANK = 1 ] && exit 7; sleep 600"));
  job.finish();
  EXPECT_EQ(job.status, 7);
  EXPECT_THAT(job.err, HasSubstr("rank 1 exited with status 7"));
  EXPECT_THAT(job.err, HasSubstr("ending ranks 0, 2"));
}

TEST(RunFailure, ASignalIsReportedByName) {
  Process job(run({"-n", "2", "--grace", "0"}, "[ $MEDLEY_RANK = 1 ] && kill -SEGV $$; sleep 600"));
  job.finish();
  EXPECT_EQ(job.status, 128 + SIGSEGV);
  EXPECT_THAT(job.err, HasSubstr("rank 1 was ended by signal 11 (SIGSEGV)"));
}

TEST(RunFailure, InTheGraceOthersRaiseTheirOwnErrors) {
  // The grace period is longer than the test may take: the launcher kills no rank.
  Process job(
      run({"-n", "2", "--grace", "600"}, "if [ $MEDLEY_RANK = 1 ]; then exit 3; fi; echo 'I lost rank 1'; exit 4"));
  job.finish();
  EXPECT_EQ(job.out, "[0] I lost rank 1\n");
  EXPECT_THAT(job.err, HasSubstr("rank 0 exited with status 4"));
  EXPECT_THAT(job.err, HasSubstr("rank 1 exited with status 3"));
  EXPECT_THAT(job.err, Not(HasSubstr("ending")));
}

TEST(RunFailure, AfterTheGraceRanksCanTidyUpOnSigterm) {
  Process job(run({"-n", "2", "--grace", "0.2"},
                  "[ $MEDLEY_RANK = 1 ] && { read line < $FIFO; exit 3; };"
                  "trap 'echo tidied up; exit 9' TERM; echo go > $FIFO; sleep 600 & wait"),
              [] {
                const std::string fifo = testing::TempDir() + "/medley-run-fifo-" + std::to_string(getpid());
                mkfifo(fifo.c_str(), 0600);
                return std::map<std::string, std::string>{{"FIFO", fifo}};
              }());
  job.finish();
  unlink((testing::TempDir() + "/medley-run-fifo-" + std::to_string(getpid())).c_str());
  EXPECT_EQ(job.out, "[0] tidied up\n");
  EXPECT_EQ(job.status, 3) << "the first failure is the cause";
}

TEST(RunFailure, ARankThatIgnoresSigtermIsKilled) {
  Process job(run({"-n", "2", "--grace", "0.1"},
                  "trap '' TERM; echo pid $$; [ $MEDLEY_RANK = 1 ] && exit 5; while :; do sleep 600; done"));
  job.finish();
  EXPECT_EQ(job.status, 5);
}

TEST(RunFailure, AStoppedRankIsEndedToo) {
  Process job(run({"-n", "2", "--grace", "0.1"}, "[ $MEDLEY_RANK = 1 ] && exit 5; kill -STOP $$; exit 0"));
  job.finish();
  EXPECT_EQ(job.status, 5);
}

TEST(RunFailure, KeepGoingLetsTheOthersFinish) {
  Process job(run({"-n", "3", "--keep-going", "--grace", "0"}, "[ $MEDLEY_RANK = 1 ] && exit 7; echo finished"));
  job.finish();
  EXPECT_EQ(job.status, 7);
  EXPECT_THAT(job.out, HasSubstr("[0] finished\n"));
  EXPECT_THAT(job.out, HasSubstr("[2] finished\n"));
}

TEST(RunSignals, ForwardedToEveryRank) {
  for (const int number : {SIGINT, SIGTERM}) {
    Process job(run({"-n", "2"}, "trap 'echo heard; exit 0' INT TERM; echo ready; sleep 600 & wait"));
    EXPECT_THAT(job.line(), HasSubstr("ready"));
    EXPECT_THAT(job.line(), HasSubstr("ready"));
    job.signal(number);
    job.finish();
    EXPECT_THAT(job.out, HasSubstr("[0] heard"));
    EXPECT_THAT(job.out, HasSubstr("[1] heard"));
    EXPECT_EQ(job.status, 0) << "ranks that end well after a signal end well";
  }
}

TEST(RunSignals, UserSignalsReachTheRanksAndEndNothing) {
  Process job(run({"-n", "1"}, "trap 'echo checkpoint' USR1; echo ready; while :; do sleep 600 & wait $!; done"));
  EXPECT_EQ(job.line(), "[0] ready");
  job.signal(SIGUSR1);
  EXPECT_EQ(job.line(), "[0] checkpoint");
  job.signal(SIGTERM);
  job.finish();
  EXPECT_EQ(job.status, 128 + SIGTERM);
}

TEST(RunSignals, TheSecondOneKills) {
  Process job(run({"-n", "2"}, "trap 'echo stubborn' INT; echo ready; while :; do sleep 600 & wait $!; done"));
  EXPECT_THAT(job.line(), HasSubstr("ready"));
  EXPECT_THAT(job.line(), HasSubstr("ready"));
  job.signal(SIGINT);
  EXPECT_THAT(job.line(), HasSubstr("stubborn"));
  EXPECT_THAT(job.line(), HasSubstr("stubborn"));
  job.signal(SIGINT);
  job.finish();
  EXPECT_EQ(job.status, 128 + SIGKILL);
}

TEST(RunSignals, StoppingAndContinuingReachTheRanks) {
  Process job(run({"-n", "1"}, "trap 'echo went on; exit 0' CONT; echo ready; while :; do sleep 600 & wait $!; done"));
  EXPECT_EQ(job.line(), "[0] ready");
  job.signal(SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(job.pid(), &status, WUNTRACED), job.pid());
  EXPECT_TRUE(WIFSTOPPED(status));
  job.signal(SIGCONT);
  EXPECT_EQ(job.line(), "[0] went on");
  job.finish();
  EXPECT_EQ(job.status, 0);
}

TEST(RunDeath, KillingTheLauncherLeavesNobodyNotEvenGrandchildren) {
  Process job(run({"-n", "2"}, "sleep 600 & echo pid $!; echo pid $$; wait"));
  std::vector<Watch> watches;
  for (int i = 0; i < 4; ++i) watches.emplace_back(pid_in(job.line()));
  job.signal(SIGKILL);
  for (const auto& watch : watches) EXPECT_TRUE(watch.ended());
  job.finish();
}

TEST(RunDeath, ProcessesARankLeftBehindEndWithTheJob) {
  Process job(run({"-n", "1"}, "sleep 600 > /dev/null 2>&1 & echo pid $!"));
  const Watch left_behind(pid_in(job.line()));
  job.finish();
  EXPECT_EQ(job.status, 0);
  EXPECT_TRUE(left_behind.ended());
}

}  // namespace
}  // namespace medley::test

// Ranks started by mpirun: by medley run when mpi is among the backends, and by the user.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>

#include "cli/process.hpp"

namespace medley::test {
namespace {

using testing::HasSubstr;

class Mpirun : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (access(path().c_str(), X_OK) != 0) GTEST_SKIP() << path() << " is not installed";
  }
  static std::string path() { return std::string("/usr/bin/") + GetParam(); }
  static bool open_mpi() { return path().ends_with("openmpi"); }
  static std::vector<std::string> run(std::vector<std::string> options, std::vector<std::string> command) {
    std::vector<std::string> words = {MEDLEY_COMMAND, "run"};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back("--");
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  const std::map<std::string, std::string> environment_ = {{"MEDLEY_MPIRUN", path()}};
};

INSTANTIATE_TEST_SUITE_P(Flavours, Mpirun, testing::Values("mpirun.openmpi", "mpirun.mpich"),
                         [](const auto& name) { return std::string(name.param).substr(7); });

TEST_P(Mpirun, RanksStartedByTheUserMeet) {
  std::vector<std::string> words = {path(), "-n", "3"};
  if (open_mpi()) words.insert(words.end(), {"--oversubscribe", "--allow-run-as-root"});
  words.push_back(MEDLEY_MEET);
  Process job(words);
  job.finish();
  EXPECT_EQ(job.status, 0) << job.err;
  for (const char* rank : {"0", "1", "2"})
    EXPECT_THAT(job.out, HasSubstr(std::string("rank ") + rank + " of 3 met 0 1 2"));
}

TEST_P(Mpirun, RanksStartedByMedleyRunMeetAndArePrefixed) {
  Process job(run({"-n", "3", "--backends", "shm,mpi"}, {MEDLEY_MEET}), environment_);
  job.finish();
  EXPECT_EQ(job.status, 0) << job.err;
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_THAT(job.out, HasSubstr(std::string("[") + rank + "] rank " + rank + " of 3 met 0 1 2\n"));
  }
}

TEST_P(Mpirun, OneRanksFailureEndsTheOthersAfterTheGrace) {
  Process job(run({"-n", "3", "--backends", "mpi", "--grace", "0"},
                  {"sh", "-c", "[ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 ] && exit 7; sleep 600"}),
              environment_);
  job.finish();
  EXPECT_EQ(job.status, 7) << job.err;
  EXPECT_THAT(job.err, HasSubstr("rank 1 exited with status 7"));
}

TEST_P(Mpirun, OthersOutliveAKilledRankDuringTheGrace) {
  Process job(run({"-n", "2", "--backends", "mpi", "--keep-going"},
                  {"sh", "-c", "[ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 ] && kill -KILL $$; sleep 1; echo survived"}),
              environment_);
  job.finish();
  EXPECT_EQ(job.status, 128 + SIGKILL) << job.err;
  EXPECT_EQ(job.out, "[0] survived\n");
}

TEST_P(Mpirun, KillingTheLauncherLeavesNobody) {
  Process job(run({"-n", "2", "--backends", "mpi"}, {"sh", "-c", "sleep 600 & echo pid $!; wait"}), environment_);
  std::vector<Watch> watches;
  for (int i = 0; i < 2; ++i) {
    const std::string line = job.line();
    watches.emplace_back(static_cast<pid_t>(std::stol(line.substr(line.rfind(' ')))));
  }
  job.signal(SIGKILL);
  for (const auto& watch : watches) EXPECT_TRUE(watch.ended());
  job.finish();
}

// Open MPI's mpirun complains about a missing pipe and then waits for ever.
TEST_P(Mpirun, TooFewDescriptorsAreAnErrorWithTheLineThatHelps) {
  Process job({"/bin/sh", "-c", "ulimit -n 32; exec \"$0\" run -n 2 --backends mpi -- true", MEDLEY_COMMAND},
              environment_);
  job.finish();
  EXPECT_EQ(job.status, 2);
  EXPECT_THAT(job.err,
              HasSubstr("the limit of open files is 32, and mpirun needs 50 for 2 ranks; raise it: ulimit -n 1024"));
}

TEST_P(Mpirun, ASoftLimitOfDescriptorsIsRaised) {
  Process job(
      {"/bin/sh", "-c", "ulimit -S -n 32; exec \"$0\" run -n 2 --backends mpi -- \"$1\"", MEDLEY_COMMAND, MEDLEY_MEET},
      environment_);
  job.finish();
  EXPECT_EQ(job.status, 0) << job.err;
  EXPECT_THAT(job.out, HasSubstr("rank 1 of 2 met 0 1"));
}

TEST(AnMpirunThatStartsNobody, IsEndedByASecondSignalEvenIfItIgnoresTheFirst) {
  const std::string script = testing::TempDir() + "/stuck-mpirun-" + std::to_string(getpid());
  {
    std::ofstream text(script);
    text
        << "#!/bin/sh\n[ \"$1\" = --version ] && exit\ntrap '' TERM\necho up >&2\nwhile :; do sleep 600 & wait; done\n";
  }
  chmod(script.c_str(), 0700);
  Process job({MEDLEY_COMMAND, "run", "-n", "2", "--backends", "mpi", "--", "true"}, {{"MEDLEY_MPIRUN", script}});
  EXPECT_TRUE(job.says("up"));
  job.signal(SIGTERM);
  EXPECT_TRUE(job.says("once more kills"));
  job.signal(SIGTERM);
  job.finish();
  EXPECT_NE(job.status, 0);
  unlink(script.c_str());
}

TEST_P(Mpirun, AProgramThatIsNotThereIsStatusTwo) {
  Process job(run({"-n", "2", "--backends", "mpi"}, {"no-such-program"}), environment_);
  job.finish();
  EXPECT_EQ(job.status, 2);
  EXPECT_THAT(job.err, HasSubstr("no-such-program"));
}

}  // namespace
}  // namespace medley::test

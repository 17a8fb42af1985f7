// A rank is killed under medley run --keep-going while others use mpi: they get an error, exit, and no process is left
// behind.
#include <gmock/gmock.h>

#include "cli/process.hpp"

namespace medley::test {
namespace {

using testing::HasSubstr;

struct Case {
  const char* mpirun;
  const char* program;
};

class MpiLoss : public testing::TestWithParam<Case> {
 protected:
  /// Kills rank 1 at that moment; the survivors' errors name it, or no rank where it was not a member.
  static void expect_told(const char* moment, const char* first_names = " 1") {
    Process job({MEDLEY_COMMAND, "run", "--mpirun", GetParam().mpirun, "--backends", "mpi", "-n", "3", "--keep-going",
                 "--", GetParam().program, moment});
    job.finish();
    EXPECT_EQ(job.status, 128 + SIGKILL) << job.err;
    for (const std::string rank : {"[0] ", "[2] "}) {
      const std::string names = rank == "[0] " ? first_names : " 1";
      EXPECT_THAT(job.out, HasSubstr(rank + "told: rank_lost" + names + "\n")) << moment << '\n' << job.err;
      EXPECT_THAT(job.out, HasSubstr(rank + "refused: rank_lost\n")) << moment << '\n' << job.err;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Flavours, MpiLoss, testing::ValuesIn(std::vector<Case>{MEDLEY_LOSS_CASES}),
                         [](const auto& flavour) {
                           return std::string(flavour.param.program).ends_with("mpich") ? "mpich" : "openmpi";
                         });

TEST_P(MpiLoss, BeforeAnOperationIsToldToAll) { expect_told("before"); }
TEST_P(MpiLoss, InsideACollectiveIsToldToAll) { expect_told("inside"); }
TEST_P(MpiLoss, AfterACollectiveIsToldToAll) { expect_told("after"); }
TEST_P(MpiLoss, OfTheSenderIsToldToItsReceivers) { expect_told("receive"); }
/// Libraries that read the sender's memory notice the loss before it is announced; UCX, under MPICH, then ends the
/// process.
TEST_P(MpiLoss, OfTheSenderWhileItsMemoryIsReadIsToldToItsReceivers) { expect_told("copying"); }
TEST_P(MpiLoss, WhileACommIsMadeIsToldToAll) { expect_told("comm"); }
TEST_P(MpiLoss, InsideACallThatMakesACommunicatorIsToldToAll) { expect_told("making"); }
TEST_P(MpiLoss, InsideMpiFinalizeKeepsNobodyFromEnding) {
  Process job({MEDLEY_COMMAND, "run", "--mpirun", GetParam().mpirun, "--backends", "mpi", "-n", "3", "--keep-going",
               "--", GetParam().program, "finalising"});
  job.finish();
  EXPECT_EQ(job.status, 128 + SIGKILL) << job.err;
  for (const char* said : {"[0] done\n", "[2] done\n"}) EXPECT_THAT(job.out, HasSubstr(said)) << job.err;
}
TEST_P(MpiLoss, LeavesACommWithoutTheLostRankToOtherLibraries) {
  Process job({MEDLEY_COMMAND, "run", "--mpirun", GetParam().mpirun, "--backends", "shm,mpi", "-n", "3", "--keep-going",
               "--", GetParam().program, "apart"});
  job.finish();
  for (const std::string rank : {"[0] ", "[2] "}) {
    EXPECT_THAT(job.out, HasSubstr(rank + "told: rank_lost 1\n")) << job.err;
    EXPECT_THAT(job.out, HasSubstr(rank + "over shm: 2\n")) << job.err;
  }
}
TEST_P(MpiLoss, EndsOperationsOfCommsWithoutTheLostRank) { expect_told("bystander", ""); }

}  // namespace
}  // namespace medley::test

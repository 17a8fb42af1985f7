// medley run --bind: which cores the ranks and the threads that Medley starts in them may run on.
#include <gmock/gmock.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "bootstrap/host.hpp"
#include "cli/process.hpp"

namespace medley::test {
namespace {

using testing::HasSubstr;

std::vector<std::string> run(int ranks, std::vector<std::string> words) {
  words.insert(words.begin(), {MEDLEY_COMMAND, "run", "-n", std::to_string(ranks)});
  return words;
}

/// The masks that run_masks printed, such as {"[0] main": "10"}.
std::map<std::string, std::string> masks_of(std::vector<std::string> command,
                                            const std::map<std::string, std::string>& environment = {}) {
  Process job(std::move(command), environment);
  job.finish();
  EXPECT_EQ(job.status, 0) << job.err;
  std::map<std::string, std::string> masks;
  std::istringstream lines(job.out);
  for (std::string rank, thread, mask; lines >> rank >> thread >> mask;) masks[rank + " " + thread] = mask;
  return masks;
}

int cores_in(const std::string& mask) { return static_cast<int>(std::count(mask.begin(), mask.end(), '1')); }

class Bound : public testing::Test {
 protected:
  void SetUp() override {
    if (usable_cores() < 2) GTEST_SKIP() << "two cores are needed";
  }
};

TEST_F(Bound, EachRankGetsACoreOfItsOwn) {
  const auto masks = masks_of(run(2, {"--", MEDLEY_MASKS, "shm"}));
  EXPECT_EQ(cores_in(masks.at("[0] main")), 1);
  EXPECT_EQ(cores_in(masks.at("[1] main")), 1);
  EXPECT_NE(masks.at("[0] main"), masks.at("[1] main"));
}

TEST_F(Bound, ThreadsThatMedleyOrALibraryStartsKeepTheLaunchersCores) {
  if (!MEDLEY_HAS_GLOO) GTEST_SKIP() << "gloo is not built";
  const auto masks = masks_of(run(2, {"--", MEDLEY_MASKS, "gloo"}));
  EXPECT_EQ(cores_in(masks.at("[0] main")), 1);
  int others = 0;
  for (const auto& [thread, mask] : masks) {
    if (thread.ends_with("] main")) continue;
    EXPECT_EQ(mask, core_mask()) << thread;
    ++others;
  }
  EXPECT_GE(others, 4) << "of each rank the control thread and gloo's";
}

TEST_F(Bound, NotWithBindNone) {
  const auto masks = masks_of(run(2, {"--bind", "none", "--", MEDLEY_MASKS, "shm"}));
  EXPECT_EQ(masks.at("[0] main"), core_mask());
  EXPECT_EQ(masks.at("[1] main"), core_mask());
}

TEST(Bind, NobodyWhereRanksOutnumberTheUsableCores) {
  const int ranks = usable_cores() + 1;
  if (ranks > 64) GTEST_SKIP() << "too many ranks for a test";
  for (const auto& [thread, mask] : masks_of(run(ranks, {"--", MEDLEY_MASKS, "shm"})))
    EXPECT_EQ(mask, core_mask()) << thread;
}

TEST(Bind, ALauncherOnOneCoreBindsNobodyElsewhere) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(static_cast<int>(core_mask().find('1')), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const std::string here = core_mask();
  const auto masks = masks_of(run(2, {"--", MEDLEY_MASKS, "shm"}));
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_EQ(masks.at("[0] main"), here);
  EXPECT_EQ(masks.at("[1] main"), here);
}

TEST_F(Bound, AJobInsideARankStaysOnItsCore) {
  const auto outer = masks_of(run(2, {"--", MEDLEY_MASKS, "shm"}));
  Process job(run(2, {"--", MEDLEY_COMMAND, "run", "-n", "2", "--no-prefix", "--", MEDLEY_MASKS, "shm"}));
  job.finish();
  EXPECT_THAT(job.out, HasSubstr("[1] main " + outer.at("[1] main") + "\n")) << job.err;
  EXPECT_THAT(job.out, HasSubstr("[1] medley-control " + outer.at("[1] main") + "\n"));
}

class BoundByMpirun : public Bound, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    Bound::SetUp();
    if (access(GetParam(), X_OK) != 0) GTEST_SKIP() << GetParam() << " is not installed";
  }
  std::map<std::string, std::string> environment_ = {{"MEDLEY_MPIRUN", GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Flavours, BoundByMpirun, testing::Values("/usr/bin/mpirun.openmpi", "/usr/bin/mpirun.mpich"),
                         [](const auto& name) { return std::string(name.param).substr(16); });

TEST_P(BoundByMpirun, ToACoreEachAndNotWithBindNone) {
  const auto bound = masks_of(run(2, {"--backends", "mpi", "--", MEDLEY_MASKS, "shm"}), environment_);
  EXPECT_NE(bound.at("[0] main"), bound.at("[1] main"));
  EXPECT_EQ(bound.at("[0] medley-control"), core_mask());
  const auto free = masks_of(run(2, {"--backends", "mpi", "--bind", "none", "--", MEDLEY_MASKS, "shm"}), environment_);
  EXPECT_EQ(free.at("[0] main"), free.at("[1] main"));
}

TEST(Bind, AnUnknownWordIsStatusTwo) {
  Process job(run(2, {"--bind", "socket", "--", "true"}));
  job.finish();
  EXPECT_EQ(job.status, 2);
  EXPECT_THAT(job.err, HasSubstr("socket"));
}

}  // namespace
}  // namespace medley::test

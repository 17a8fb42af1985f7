// From measured algorithms of Open MPI to a file of its dynamic rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <medley/error.hpp>

#include "openmpi_tuner/sweep.hpp"

namespace medley::openmpi_tuner {
namespace {

using ::testing::HasSubstr;

Timing timing(int number, const char* name, double median, double reach = 0.02) {
  return {{number, name}, median * (1 - reach), median, median * (1 + reach)};
}

TEST(Best, StaysWithOpenMpisChoiceUnlessAnotherIsClearlyFaster) {
  EXPECT_EQ(best({"allreduce", 4, 64, {timing(0, "ignore", 10), timing(4, "ring", 9.8)}}).algorithm.number, 0);
  // Noise
  EXPECT_EQ(best({"allreduce", 4, 64, {timing(0, "ignore", 10), timing(4, "ring", 8, 0.5)}}).algorithm.number, 0);
  EXPECT_EQ(
      best({"allreduce", 4, 64, {timing(0, "ignore", 10), timing(4, "ring", 8), timing(3, "rd", 7)}}).algorithm.number,
      3);
}

TEST(RulesFile, HasOneRulePerRangeAndLeavesOtherCommunicatorsAlone) {
  SweepResult result{0, "Open MPI v4.1.4", {}};
  result.cells = {{"allreduce", 4, 1024, {timing(0, "ignore", 10), timing(3, "recursive_doubling", 5)}},
                  {"allreduce", 4, 4096, {timing(0, "ignore", 20), timing(3, "recursive_doubling", 10)}},
                  {"allreduce", 4, 65536, {timing(0, "ignore", 50), timing(4, "ring", 60)}},
                  {"bcast", 4, 1024, {timing(0, "ignore", 10)}}};
  EXPECT_THAT(rules_file(result),
              HasSubstr("\n2 # collectives\n2 # allreduce\n2 # communicator sizes\n4 # this one\n2 # sizes\n"
                        "0 3 0 0 # recursive_doubling, 2.00x Open MPI's own choice at 1024 bytes\n"
                        "16385 0 0 0 # Open MPI decides\n"
                        "5 # and larger ones\n1 # size\n0 0 0 0 # Open MPI decides\n"
                        "7 # bcast\n"));
}

TEST(RulesFile, NothingMeasuredIsAnError) { EXPECT_THROW(rules_file({}), Error); }

}  // namespace
}  // namespace medley::openmpi_tuner

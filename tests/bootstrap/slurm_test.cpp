#include "bootstrap/slurm.hpp"

#include <gtest/gtest.h>

#include <medley/error.hpp>

namespace medley {
namespace {

using Names = std::vector<std::string>;

TEST(SlurmNodeList, PlainNames) {
  EXPECT_EQ(expand_node_list("login"), Names({"login"}));
  EXPECT_EQ(expand_node_list("a,b-1.cluster"), Names({"a", "b-1.cluster"}));
}

TEST(SlurmNodeList, RangesKeepTheirWidth) {
  EXPECT_EQ(expand_node_list("node[01-03,07]"), Names({"node01", "node02", "node03", "node07"}));
  EXPECT_EQ(expand_node_list("n[8-11]"), Names({"n8", "n9", "n10", "n11"}));
  EXPECT_EQ(expand_node_list("n[098-101]x"), Names({"n098x", "n099x", "n100x", "n101x"}));
}

TEST(SlurmNodeList, SeveralGroupsAndSeveralBrackets) {
  EXPECT_EQ(expand_node_list("a[1-2],b,c[3]"), Names({"a1", "a2", "b", "c3"}));
  EXPECT_EQ(expand_node_list("r[1-2]n[3-4]"), Names({"r1n3", "r1n4", "r2n3", "r2n4"}));
}

TEST(SlurmNodeList, MalformedListsAreRefused) {
  for (const char* list : {"", "a,", "a[", "a[1", "a]1[", "a[]", "a[1-]", "a[-1]", "a[2-1]", "a[x]", "a[1-2-3]",
                           "a[0-999999999]", "a[0-9999]b[0-9999]", "a[1]]"}) {
    EXPECT_THROW(expand_node_list(list), Error) << list;
  }
}

}  // namespace
}  // namespace medley

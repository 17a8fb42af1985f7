// Tables in the form of other libraries, and the names of NCCL's algorithms.
#include "tune/export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <medley/error.hpp>

#include "route/nccl_algorithm.hpp"
#include "route/tables.hpp"
#include "tune/nccl_variant.hpp"

namespace medley::tune {
namespace {

using route::cell;
using route::timing;
using ::testing::HasSubstr;
using ::testing::Not;

route::Table table_of(std::vector<route::Cell> cells, Memory memory) {
  route::Table table;
  table.machine = route::this_machine();
  for (route::Cell& one : cells) {
    one.key.memory = memory;
    table.put(std::move(one));
  }
  return table;
}

TEST(NcclAlgorithm, ReadsWhatItWrites) {
  for (const char* name :
       {"ring_ll", "ring_ll128", "tree_simple_c8", "nvls_tree_simple", "collnet_direct_simple_c16"}) {
    const auto parsed = route::parse_nccl_algorithm(name);
    ASSERT_TRUE(parsed) << name;
    EXPECT_EQ(route::name(*parsed), name);
  }
  for (const char* name :
       {"native", "ring", "", "_ll", "ring_ll_c0", "ring_ll_c", "ring_ll_c99999999999", "ring_ll128x", "hexagon_ll"})
    EXPECT_FALSE(route::parse_nccl_algorithm(name)) << name;
}

TEST(Export, NcclsExampleTunerGetsRangesNodesAndRanks) {
  const route::Table table = table_of(
      {cell(Op::all_reduce, {2, 4}, 4096, {timing("nccl", "tree_ll", 10), timing("nccl", "native", 20)}),
       cell(Op::all_reduce, {2, 4}, 1 << 20, {timing("nccl", "ring_simple_c8", 100), timing("nccl", "tree_ll", 300)}),
       cell(Op::all_gather, {2, 4}, 4096, {timing("nccl", "native", 1), timing("nccl", "ring_ll", 9)}),
       cell(Op::all_to_all, {2, 4}, 4096, {timing("nccl", "native", 1)})},
      Memory::cuda);
  const Export exported = nccl_export(table);
  EXPECT_EQ(exported.rules, 2u);
  EXPECT_THAT(exported.text,
              HasSubstr("\nallreduce,0,65536,tree,ll,-1,2,8\nallreduce,65537,4294967295,ring,simple,8,2,8\n"));
  EXPECT_THAT(exported.text, Not(HasSubstr("\nallgather")));  // NCCL's own choice won
}

TEST(Export, ATableWithoutNcclsAlgorithmsSaysHowToMeasureThem) {
  try {
    nccl_export(route::small_table());
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("medley tune --memory cuda --nccl all"));
  }
}

TEST(Export, UccsScoreStringFollowsItsGrammar) {
  const route::Table table = table_of(
      {cell(Op::all_reduce, {1, 4}, 4096,
            {timing("ucx", "pairwise", 1), timing("ucx", "recursive_doubling", 10), timing("ucx", "rabenseifner", 30)}),
       cell(Op::all_reduce, {1, 4}, 1 << 20,
            {timing("shm", "native", 1), timing("ucx", "rabenseifner", 100), timing("ucx", "recursive_doubling", 300)}),
       cell(Op::reduce_scatter, {1, 4}, 4096, {timing("ucx", "ring", 1)})},
      Memory::host);
  const Export exported = ucc_export(table);
  EXPECT_EQ(exported.rules, 3u);
  // coll_type:msg_range:mem_type:team_size:score:alg; pairwise has no counterpart in UCC, so the next one counts.
  EXPECT_THAT(
      exported.text,
      HasSubstr(
          "\nUCC_TL_UCP_TUNE=allreduce:0-64K:host:[4-4]:inf:@knomial#allreduce:65537-inf:host:[4-4]:inf:@sra_knomial#"
          "reduce_scatter:0-inf:host:[4-4]:inf:@ring\n"));
}

TEST(Export, UccNeedsRowsOfUcx) { EXPECT_THROW(ucc_export(route::small_table()), Error); }

TEST(NcclVariant, ComesFromTheEnvironmentThatNcclReads) {
  unsetenv("NCCL_ALGO");
  unsetenv("NCCL_PROTO");
  EXPECT_FALSE(nccl_variant_of_environment());
  setenv("NCCL_ALGO", "ring", 1);
  EXPECT_FALSE(nccl_variant_of_environment());  // NCCL would still choose the protocol
  setenv("NCCL_PROTO", "ll128", 1);
  EXPECT_EQ(route::name(*nccl_variant_of_environment()), "ring_ll128");
  setenv("NCCL_ALGO", "Ring,Tree", 1);
  EXPECT_FALSE(nccl_variant_of_environment());
  for (const route::NcclAlgorithm& variant : nccl_variants()) {
    set_nccl_variant(variant);
    EXPECT_EQ(nccl_variant_of_environment(), variant);
  }
  unsetenv("NCCL_ALGO");
  unsetenv("NCCL_PROTO");
}

TEST(NcclVariant, ListsAreChecked) {
  EXPECT_EQ(parse_nccl_variants("ring_ll,tree_simple").size(), 2u);
  EXPECT_EQ(parse_nccl_variants("all").size(), nccl_variants().size());
  try {
    parse_nccl_variants("ring_ll,square");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"square\""));
  }
}

}  // namespace
}  // namespace medley::tune

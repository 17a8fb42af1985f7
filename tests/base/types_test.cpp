#include <gtest/gtest.h>

#include <medley/types.hpp>

namespace medley {

TEST(Types, EveryNameParsesBack) {
  for (int i = 0; i < op_count; ++i) EXPECT_EQ(parse_op(name(static_cast<Op>(i))), static_cast<Op>(i));
  for (int i = 0; i < dtype_count; ++i) EXPECT_EQ(parse_dtype(name(static_cast<DType>(i))), static_cast<DType>(i));
  for (int i = 0; i < reduce_op_count; ++i) {
    EXPECT_EQ(parse_reduce_op(name(static_cast<ReduceOp>(i))), static_cast<ReduceOp>(i));
  }
}

TEST(Types, SpellingsOfOtherLibrariesAreUnderstood) {
  EXPECT_EQ(parse_op("allreduce"), Op::all_reduce);
  EXPECT_EQ(parse_op("alltoallv"), Op::all_to_allv);
  EXPECT_EQ(parse_dtype("bfloat16"), DType::bf16);
  EXPECT_FALSE(parse_op("reduce_all"));
}

}  // namespace medley

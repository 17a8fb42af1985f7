#include <gtest/gtest.h>

#include <array>
#include <medley/buffer.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

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

static_assert(std::is_convertible_v<std::vector<float>&, Buffer>);
static_assert(std::is_convertible_v<std::span<float>, Buffer>);
static_assert(!std::is_convertible_v<std::vector<float>, Buffer>, "the result would be lost");
static_assert(!std::is_convertible_v<const std::vector<float>&, Buffer>);
static_assert(std::is_convertible_v<std::vector<float>, ConstBuffer>);
static_assert(!std::is_convertible_v<float&, Buffer>, "only by buffer()");
static_assert(!std::is_convertible_v<std::vector<unsigned>&, Buffer>, "min and max of signed numbers are others");

TEST(Buffers, ConvertFromWhatHoldsElements) {
  std::array<long long, 3> wide{};
  EXPECT_EQ(Buffer(wide).dtype, DType::i64);
  std::vector<std::byte> bytes(5);
  EXPECT_EQ(ConstBuffer(bytes).dtype, DType::u8);
  EXPECT_EQ(ConstBuffer(std::string("abc")).count, 3);
}

TEST(Buffers, OfOneValueAndBehindAPointer) {
  double loss = 2;
  const Buffer one = buffer(loss);
  EXPECT_EQ(one.data, &loss);
  EXPECT_EQ(one.count, 1);
  EXPECT_EQ(one.dtype, DType::f64);
  const float values[4] = {};
  const ConstBuffer several = buffer(&values[1], 3);
  EXPECT_EQ(several.data, &values[1]);
  EXPECT_EQ(several.bytes(), 12);
}

}  // namespace medley

// Every reduction kernel, on every instruction set this CPU has, against a sequential reference, bit for bit.
#include <medley/sdk/reduce.hpp>

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "reduce/reference.hpp"

namespace medley {
namespace {

using reference::Bytes;

/// Bytes that start `offset` after a multiple of 64 and end with their allocation, for a sanitizer to
/// check, with a known pattern before them.
class Placed {
 public:
  Placed(std::size_t offset, std::size_t size) : start_(64 + offset), size_(size) {
    void* room = nullptr;
    if (posix_memalign(&room, 64, start_ + size_) != 0) throw std::bad_alloc();
    room_.reset(static_cast<std::byte*>(room));
    std::fill_n(room_.get(), start_ + size_, std::byte{0xA5});
  }
  Placed(std::size_t offset, const Bytes& from, std::size_t size) : Placed(offset, size) {
    std::copy_n(from.begin(), size, data());
  }
  std::byte* data() { return room_.get() + start_; }
  bool equals(const Bytes& expected) { return std::equal(data(), data() + size_, expected.begin()); }
  bool front_untouched() {
    return std::all_of(room_.get(), data(), [](std::byte b) { return b == std::byte{0xA5}; });
  }

 private:
  struct Free {
    void operator()(std::byte* room) const { std::free(room); }
  };
  std::unique_ptr<std::byte, Free> room_;
  std::size_t start_, size_;
};

std::string case_name(DType dtype, ReduceOp op, int n, std::size_t count) {
  return std::string(name(dtype)) + " " + std::string(name(op)) + " of " + std::to_string(n) + ", " +
         std::to_string(count) + " elements";
}

template <class Visit>
void for_each_reduction(Visit visit) {
  for (int t = 0; t < dtype_count; ++t)
    for (int o = 0; o < reduce_op_count; ++o)
      if (reducible(DType(t), ReduceOp(o))) visit(DType(t), ReduceOp(o));
}

std::vector<Bytes> sources(DType dtype, int n, std::size_t count) {
  std::mt19937_64 random(static_cast<unsigned>(dtype) * 1000u + static_cast<unsigned>(n));
  std::vector<Bytes> srcs;
  for (int k = 0; k < n; ++k) srcs.push_back(reference::inputs(dtype, count, random));
  return srcs;
}

class ReduceOnTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

/// The targets that the library was compiled for and this CPU supports, and the fallback without vectors.
std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> all = hwy::SupportedAndGeneratedTargets();
  if (std::find(all.begin(), all.end(), HWY_STATIC_TARGET) == all.end()) all.push_back(HWY_STATIC_TARGET);
  return all;
}

/// One call; with -1 for `dst_is` dst has its own memory, else it is that source.
void check(DType dtype, ReduceOp op, const std::vector<Bytes>& srcs, int n, std::size_t count, int divisor, bool stream,
           int dst_is, std::size_t offset, const Bytes& expected) {
  const std::size_t bytes = count * size_of(dtype);
  std::vector<Placed> placed;
  std::vector<const void*> pointers;
  for (int k = 0; k < n; ++k) {
    placed.emplace_back(offset == 0 ? 0 : (offset * 7 + static_cast<std::size_t>(k) * 5) % 64, srcs[k], bytes);
    pointers.push_back(placed.back().data());
  }
  Placed own(offset, bytes);
  Placed& dst = dst_is < 0 ? own : placed[dst_is];
  reducer(dtype, op)(dst.data(), pointers.data(), n, count, divisor, stream);
  ASSERT_TRUE(dst.equals(expected)) << case_name(dtype, op, n, count) << ", divisor " << divisor << ", stream "
                                    << stream << ", dst is " << dst_is << ", offset " << offset;
  ASSERT_TRUE(dst.front_untouched()) << case_name(dtype, op, n, count) << ", offset " << offset;
}

TEST_P(ReduceOnTarget, EqualsReferenceForEveryCountAndAlignment) {
  const std::vector<std::size_t> counts = {0,  1,  2,  3,  4,  5,  7,  8,   9,   11,  15,  16,  17,  23, 31,
                                           32, 33, 47, 63, 64, 65, 95, 127, 128, 129, 191, 257, 383, 511};
  for_each_reduction([&](DType dtype, ReduceOp op) {
    for (int n : {1, 2, 3, 5, 8, 16, 64}) {
      const int divisor = op == ReduceOp::avg ? n : 1;
      const auto srcs = sources(dtype, n, counts.back());
      const Bytes expected = reference::reduce(dtype, op, srcs, n, counts.back(), divisor);
      for (std::size_t count : counts) {
        if (n > 8 && count % 2 == 0) continue;  // half of the counts suffice: the path is that of 3, 5 and 8
        const std::size_t element = size_of(dtype), odd = 1 + count % 61;
        check(dtype, op, srcs, n, count, divisor, false, -1, 0, expected);
        check(dtype, op, srcs, n, count, divisor, false, -1, odd, expected);
        check(dtype, op, srcs, n, count, divisor, true, -1, count % 8 * element, expected);
        check(dtype, op, srcs, n, count, divisor, true, -1, odd, expected);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(ReduceOnTarget, DestinationMayBeAnySource) {
  for_each_reduction([&](DType dtype, ReduceOp op) {
    for (int n : {1, 2, 5}) {
      const auto srcs = sources(dtype, n, 600);
      const Bytes expected = reference::reduce(dtype, op, srcs, n, 600, 1);
      for (std::size_t count : {1, 6, 19, 77, 600})
        for (int k = 0; k < n; ++k)
          for (bool stream : {false, true})
            check(dtype, op, srcs, n, count, 1, stream, k, size_of(dtype) * 3, expected);
      if (HasFatalFailure()) return;
    }
  });
}

/// Enough sources and elements that partial results are carried from pass to pass, through several blocks.
TEST_P(ReduceOnTarget, ManySourcesAreCombinedInOrder) {
  constexpr std::size_t count = 20011;
  constexpr int n = 19;
  for_each_reduction([&](DType dtype, ReduceOp op) {
    if (HasFatalFailure()) return;
    const auto srcs = sources(dtype, n, count);
    const int divisor = op == ReduceOp::avg ? n : 1;
    const Bytes expected = reference::reduce(dtype, op, srcs, n, count, divisor);
    check(dtype, op, srcs, n, count, divisor, false, 17, size_of(dtype), expected);
    check(dtype, op, srcs, n, count, divisor, true, 2, size_of(dtype), expected);
  });
}

TEST_P(ReduceOnTarget, DivisionIsRoundedOnce) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (int n : {1, 2, 3})
      for (int divisor : {2, 3, 7, 64, 1000, 1 << 20}) {
        const auto srcs = sources(dtype, n, 1000);
        const Bytes expected = reference::reduce(dtype, ReduceOp::avg, srcs, n, 1000, divisor);
        check(dtype, ReduceOp::avg, srcs, n, 1000, divisor, false, -1, 4, expected);
        if (HasFatalFailure()) return;
      }
}

/// Every pair of special values, in both orders: all cases that IEEE 754 has a rule for.
TEST_P(ReduceOnTarget, SpecialValuesMeetEachOther) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const double tiny = dtype == DType::f64 ? 0x1p-1074 : dtype == DType::f16 ? 0x1p-24 : 0x1p-133;
    const double huge = dtype == DType::f64 ? 0x1.fp1023 : dtype == DType::f16 ? 65504.0 : 0x1.fp127;
    std::vector<std::uint64_t> values;
    for (double v : {0.0, tiny, 3 * tiny, 0.75, 1.0, huge, HUGE_VAL})
      for (double sign : {1.0, -1.0}) values.push_back(reference::float_bits(dtype, sign * v));
    const std::uint64_t quiet = reference::float_bits(dtype, std::nan(""));
    const std::uint64_t sign = std::uint64_t{1} << (size_of(dtype) * 8 - 1);
    for (std::uint64_t nan : {quiet, quiet | sign, quiet | 5, (quiet | sign) + 3}) values.push_back(nan);
    std::vector<Bytes> srcs(2);
    for (std::uint64_t a : values)
      for (std::uint64_t b : values)
        for (auto [bytes, value] : {std::pair{&srcs[0], a}, std::pair{&srcs[1], b}}) {
          const auto* raw = reinterpret_cast<const std::byte*>(&value);
          bytes->insert(bytes->end(), raw, raw + size_of(dtype));
        }
    const std::size_t count = values.size() * values.size();
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
      const Bytes expected = reference::reduce(dtype, op, srcs, 2, count, 1);
      check(dtype, op, srcs, 2, count, 1, false, -1, 0, expected);
      for (std::size_t i = 0; i < count; ++i) {  // alone, an element goes through the narrowest vector
        std::vector<Bytes> one(2);
        const std::size_t size = size_of(dtype), at = i * size;
        for (int k : {0, 1}) one[k].assign(srcs[k].begin() + at, srcs[k].begin() + at + size);
        check(dtype, op, one, 2, 1, 1, false, -1, 0, Bytes(expected.begin() + at, expected.begin() + at + size));
      }
      if (HasFatalFailure()) return;
    }
  }
}

/// All 65,536 values of both 16-bit floats, alone and against partners that make ties, overflow and
/// subnormals.
TEST_P(ReduceOnTarget, HalfPrecisionRoundsToNearestEven) {
  constexpr std::size_t all = 65536;
  for (DType dtype : {DType::f16, DType::bf16}) {
    const auto partner_of = [&](double value) {
      return static_cast<std::uint16_t>(reference::float_bits(dtype, value));
    };
    std::vector<Bytes> srcs(2, Bytes(all * 2));
    for (std::size_t i = 0; i < all; ++i) std::memcpy(srcs[0].data() + 2 * i, &i, 2);
    for (double value :
         {1.0, -1.0, 0.5, 1.5, 0x1p-9, 0x1p-10, 0x1p-11, 0x1.8p-11, 0x1p-24, 0x1.004p0, 3.0, 65504.0, 48.0, 0x1p-14}) {
      const std::uint16_t partner = partner_of(value);
      for (std::size_t i = 0; i < all; ++i) std::memcpy(srcs[1].data() + 2 * i, &partner, 2);
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::product})
        check(dtype, op, srcs, 2, all, 1, false, -1, 0, reference::reduce(dtype, op, srcs, 2, all, 1));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ReduceOnTarget, StreamingCopyIsACopy) {
  std::mt19937_64 random(1);
  const Bytes from = reference::inputs(DType::u8, 5000, random);
  for (std::size_t bytes : {0, 1, 63, 64, 65, 511, 512, 513, 640, 1000, 4096, 5000})
    for (std::size_t to_offset : {0, 1, 31, 32, 63})
      for (std::size_t from_offset : {0, 1, 40}) {
        Placed src(from_offset, from, bytes), dst(to_offset, bytes);
        copy_stream(dst.data(), src.data(), bytes);
        ASSERT_TRUE(dst.equals(from) && dst.front_untouched())
            << bytes << " bytes, " << to_offset << ", " << from_offset;
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, ReduceOnTarget, testing::ValuesIn(targets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

TEST(Reducer, IsMissingExactlyWhereATypeCannotReduce) {
  for (int t = 0; t < dtype_count; ++t)
    for (int o = 0; o < reduce_op_count; ++o)
      EXPECT_EQ(reducer(DType(t), ReduceOp(o)) != nullptr, reducible(DType(t), ReduceOp(o)));
  EXPECT_EQ(reducer(DType::f32, ReduceOp::avg), reducer(DType::f32, ReduceOp::sum));
}

TEST(Reducer, FollowsTheCpu) {
  std::vector<ReduceFn> seen;
  for (std::int64_t target : targets()) {
    hwy::SetSupportedTargetsForTest(target);
    const ReduceFn fn = reducer(DType::f32, ReduceOp::sum);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), fn), 0) << hwy::TargetName(target);
    seen.push_back(fn);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace
}  // namespace medley

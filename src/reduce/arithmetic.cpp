// Sums, products, minima and maxima of integers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/arithmetic.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "reduce/combine-inl.h"
#include "reduce/elements-inl.h"
#include "reduce/kernels.hpp"
#include "reduce/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {

template <class T>
ReduceFn int_kernel(ReduceOp op) {
  return arithmetic<Native<T>, IntSum, IntProduct, IntMin, IntMax>(op);
}

ReduceFn arithmetic_kernel(DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::i64: return int_kernel<std::int64_t>(op);
    case DType::i32: return int_kernel<std::int32_t>(op);
    case DType::i16: return int_kernel<std::int16_t>(op);
    case DType::i8: return int_kernel<std::int8_t>(op);
    case DType::u8: return int_kernel<std::uint8_t>(op);
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley {

HWY_EXPORT(arithmetic_kernel);
ReduceFn arithmetic_reducer(DType dtype, ReduceOp op) noexcept {
  return HWY_DYNAMIC_DISPATCH(arithmetic_kernel)(dtype, op);
}

}  // namespace medley
#endif

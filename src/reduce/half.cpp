// Reductions of f16 and bf16: combined in f32, rounded once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/half.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "reduce/combine-inl.h"
#include "reduce/elements-inl.h"
#include "reduce/kernels.hpp"
#include "reduce/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {

template <class Element>
ReduceFn half_kernel_of(ReduceOp op) {
  return arithmetic<Element, FloatSum, FloatProduct, FloatMin, FloatMax>(op);
}

ReduceFn half_kernel(DType dtype, ReduceOp op) {
  return dtype == DType::f16 ? half_kernel_of<Float16>(op) : half_kernel_of<BFloat16>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley {

HWY_EXPORT(half_kernel);
ReduceFn half_reducer(DType dtype, ReduceOp op) noexcept { return HWY_DYNAMIC_DISPATCH(half_kernel)(dtype, op); }

}  // namespace medley
#endif

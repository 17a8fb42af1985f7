// Reductions of f64 and f32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/float.cpp"
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
ReduceFn float_kernel_of(ReduceOp op) {
  return arithmetic<Element, FloatSum, FloatProduct, FloatMin, FloatMax>(op);
}

ReduceFn float_kernel(DType dtype, ReduceOp op) {
  return dtype == DType::f64 ? float_kernel_of<Native<double>>(op) : float_kernel_of<Native<float>>(op);
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley {

HWY_EXPORT(float_kernel);
ReduceFn float_reducer(DType dtype, ReduceOp op) noexcept { return HWY_DYNAMIC_DISPATCH(float_kernel)(dtype, op); }

}  // namespace medley
#endif

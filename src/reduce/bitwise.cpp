// Bitwise reductions of integers, and every reduction of bool.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/bitwise.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "reduce/combine-inl.h"
#include "reduce/elements-inl.h"
#include "reduce/kernels.hpp"
#include "reduce/loop-inl.h"

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {

/// A wide element is just several bytes: one kernel serves all widths.
template <class Combine, std::size_t width>
void reduce_bytes(void* dst, const void* const* srcs, int n_srcs, std::size_t count, int, bool stream) {
  reduce<Native<std::uint8_t>, Combine>(dst, srcs, n_srcs, count * width, 1, stream);
}

template <class Combine>
ReduceFn bytes_kernel(DType dtype) {
  switch (size_of(dtype)) {
    case 8: return reduce_bytes<Combine, 8>;
    case 4: return reduce_bytes<Combine, 4>;
    case 2: return reduce_bytes<Combine, 2>;
    default: return reduce_bytes<Combine, 1>;
  }
}

ReduceFn bool_kernel(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor: return reduce<Bool, BitOr>;
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band: return reduce<Bool, BitAnd>;
    case ReduceOp::bxor: return reduce<Bool, BitXor>;
    default: return nullptr;
  }
}

ReduceFn bitwise_kernel(DType dtype, ReduceOp op) {
  if (dtype == DType::boolean) return bool_kernel(op);
  switch (op) {
    case ReduceOp::band: return bytes_kernel<BitAnd>(dtype);
    case ReduceOp::bor: return bytes_kernel<BitOr>(dtype);
    case ReduceOp::bxor: return bytes_kernel<BitXor>(dtype);
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley {

HWY_EXPORT(bitwise_kernel);
ReduceFn bitwise_reducer(DType dtype, ReduceOp op) noexcept { return HWY_DYNAMIC_DISPATCH(bitwise_kernel)(dtype, op); }

}  // namespace medley
#endif

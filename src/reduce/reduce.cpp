#include <medley/sdk/reduce.hpp>

#include "reduce/kernels.hpp"

namespace medley {

ReduceFn reducer(DType dtype, ReduceOp op) noexcept {
  if (!reducible(dtype, op)) return nullptr;
  if (op == ReduceOp::avg) op = ReduceOp::sum;
  switch (dtype) {
    case DType::f64:
    case DType::f32: return float_reducer(dtype, op);
    case DType::f16:
    case DType::bf16: return half_reducer(dtype, op);
    case DType::boolean: return bitwise_reducer(dtype, op);
    default: break;
  }
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  return bitwise ? bitwise_reducer(dtype, op) : arithmetic_reducer(dtype, op);
}

}  // namespace medley

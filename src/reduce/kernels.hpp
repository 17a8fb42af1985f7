// The kernels of each family of types, for reducer(). Each family is a separate translation unit, because
// Highway compiles it once per instruction set.
#pragma once

#include <medley/sdk/reduce.hpp>

namespace medley {

// Each takes a combination of its own types that reducible() allows.
ReduceFn float_reducer(DType dtype, ReduceOp op) noexcept;       // f64 f32
ReduceFn half_reducer(DType dtype, ReduceOp op) noexcept;        // f16 bf16
ReduceFn arithmetic_reducer(DType dtype, ReduceOp op) noexcept;  // integers: sum product min max
ReduceFn bitwise_reducer(DType dtype, ReduceOp op) noexcept;     // integers: band bor bxor; bool: everything

}  // namespace medley

// Where reducer() finds the kernels of each family of types. Each is a translation unit of its own, because
// Highway compiles it once per instruction set.
#pragma once

#include <medley/sdk/reduce.hpp>

namespace medley {

// Each takes a pair that reducible() allows, of its own types.
ReduceFn float_reducer(DType dtype, ReduceOp op) noexcept;       // f64 f32
ReduceFn half_reducer(DType dtype, ReduceOp op) noexcept;        // f16 bf16
ReduceFn arithmetic_reducer(DType dtype, ReduceOp op) noexcept;  // integers: sum product min max
ReduceFn bitwise_reducer(DType dtype, ReduceOp op) noexcept;     // integers: band bor bxor; bool: everything

}  // namespace medley

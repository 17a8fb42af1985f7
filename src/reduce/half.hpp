// 16-bit floats to f32 and back, vectorised for this CPU. Used by reductions that send f32 between
// ranks, so that f16 and bf16 are rounded once.
#pragma once

#include <cstddef>
#include <medley/types.hpp>

namespace medley {

/// to[i] = from[i], exactly; dtype is f16 or bf16. Any alignment, no overlap.
void widen_half(float* to, const void* from, DType dtype, std::size_t count) noexcept;

/// to[i] = from[i] rounded to nearest even; a NaN must be a reduction's canonical one (medley/sdk/reduce.hpp).
void narrow_half(void* to, const float* from, DType dtype, std::size_t count) noexcept;

}  // namespace medley

// Combining the buffers of several ranks into one, and copying past the cache, vectorised for this CPU.
// Used for every reduction in host memory: by the shm backend and by the algorithms over send and recv.
#pragma once

#include <cstddef>

#include <medley/export.hpp>
#include <medley/types.hpp>

namespace medley {

/// dst[i] = (srcs[0][i] op srcs[1][i] op …) / divisor, in that order, for i < count; n_srcs >= 1.
///
/// Every element is a pure function of its inputs: neither the CPU, the alignment, the chunking nor `stream`
/// changes a bit. dst may be one of the sources, at the same address; no other overlap is allowed.
///
/// - Integers wrap. f16 and bf16 combine in f32 and are rounded once, to nearest even.
/// - bool is one byte: any nonzero input is true, results are 0 or 1. sum, max and bor mean or; product, min
///   and band mean and; bxor is exclusive or.
/// - A NaN among the inputs gives a NaN, for min and max too, and always the same one (positive, quiet).
///   min(-0, +0) is -0 and max is +0, so that neither depends on the order.
/// - One source and no divisor is a copy, bit for bit (bool still becomes 0 or 1).
/// - `divisor` (>= 1) divides the sum of floats before it is rounded to the type: a true division, as a
///   user would write it, not a multiplication by a rounded 1/n. Other reductions ignore it.
/// - `stream` writes dst past the cache, for results that are not read soon; the call ends with a fence.
using ReduceFn = void (*)(void* dst, const void* const* srcs, int n_srcs, std::size_t count, int divisor, bool stream);

/// The function that combines elements of `dtype` by `op`, for this CPU; nullptr where reducible() says no.
/// avg returns sum's: the caller passes the number of ranks as divisor in the last step, 1 before.
MEDLEY_API ReduceFn reducer(DType dtype, ReduceOp op) noexcept;

/// memcpy whose stores bypass the cache (any alignment, no overlap); ends with a fence.
MEDLEY_API void copy_stream(void* dst, const void* src, std::size_t bytes) noexcept;

}  // namespace medley

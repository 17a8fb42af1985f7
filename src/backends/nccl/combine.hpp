// Combines the gathered inputs of all ranks on the device, in rank order: for types and reductions that NCCL lacks, and
// where runs must be reproducible bit by bit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <medley/types.hpp>

namespace medley::nccl {

/// Loads the kernels, so that no later launch has to load one, which could wait for a running kernel.
void preload_combine();

/// out[i] = parts[0][i] op parts[1][i] op …, for i < count, where part r begins `stride` elements after part r-1; an
/// average is divided by the number of parts. As medley/sdk/reduce.hpp says: integers wrap, f16 and bf16 combine in f32
/// and are rounded once, bool is 0 or 1, NaN stays NaN. Only enqueues.
void combine(void* out, const void* parts, int ranks, std::int64_t stride, std::int64_t count, DType dtype, ReduceOp op,
             cudaStream_t stream);

}  // namespace medley::nccl

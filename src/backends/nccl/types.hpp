// Medley's types and reductions as NCCL's, and which of them NCCL has.
#pragma once

#include <nccl.h>

#include <medley/types.hpp>
#include <optional>

namespace medley::nccl {

/// NCCL has no 16-bit integers, and no bool.
inline std::optional<ncclDataType_t> arithmetic_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return ncclFloat64;
    case DType::f32: return ncclFloat32;
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    case DType::i64: return ncclInt64;
    case DType::i32: return ncclInt32;
    case DType::i8: return ncclInt8;
    case DType::u8: return ncclUint8;
    case DType::i16:
    case DType::boolean: break;
  }
  return std::nullopt;
}

/// NCCL has no bitwise reductions.
inline std::optional<ncclRedOp_t> reduction(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return ncclSum;
    case ReduceOp::avg: return ncclAvg;
    case ReduceOp::product: return ncclProd;
    case ReduceOp::min: return ncclMin;
    case ReduceOp::max: return ncclMax;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor: break;
  }
  return std::nullopt;
}

/// Whether NCCL itself combines these; others are gathered by NCCL and combined by a kernel of ours.
inline bool combines(DType dtype, ReduceOp op) { return arithmetic_type(dtype) && reduction(op); }

}  // namespace medley::nccl

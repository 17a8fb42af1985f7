#include "backends/mpi/reductions.hpp"

namespace medley::mpi {

bool reduces_natively(DType dtype, ReduceOp reduce) {
  if (!reducible(dtype, reduce)) return false;
  switch (dtype) {
    case DType::f64:
    case DType::f32: return reduce == ReduceOp::sum || reduce == ReduceOp::product;
    case DType::i64:
    case DType::i32: return true;
    case DType::i16:
    case DType::i8:
    case DType::u8: return reduce == ReduceOp::band || reduce == ReduceOp::bor || reduce == ReduceOp::bxor;
    case DType::f16:
    case DType::bf16:
    case DType::boolean: return false;
  }
  return false;
}

MPI_Datatype type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return MPI_DOUBLE;
    case DType::f32: return MPI_FLOAT;
    case DType::i64: return MPI_INT64_T;
    case DType::i32: return MPI_INT32_T;
    case DType::i16: return MPI_INT16_T;
    case DType::i8: return MPI_INT8_T;
    case DType::u8: return MPI_UINT8_T;
    default: return MPI_DATATYPE_NULL;
  }
}

MPI_Op operation_of(ReduceOp reduce) {
  switch (reduce) {
    case ReduceOp::sum: return MPI_SUM;
    case ReduceOp::product: return MPI_PROD;
    case ReduceOp::min: return MPI_MIN;
    case ReduceOp::max: return MPI_MAX;
    case ReduceOp::band: return MPI_BAND;
    case ReduceOp::bor: return MPI_BOR;
    case ReduceOp::bxor: return MPI_BXOR;
    default: return MPI_OP_NULL;
  }
}

}  // namespace medley::mpi

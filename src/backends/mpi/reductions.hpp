// Which reductions MPI does as Medley promises them, and MPI's handles for them.
#pragma once

#include <mpi.h>

#include <medley/types.hpp>

namespace medley::mpi {

/// Whether MPI's own type and operation give what Medley promises. Not: f16 and bf16, which MPI lacks; bool,
/// whose sum is a byte's in MPI; avg; min and max of floats, where MPI leaves open what NaN and -0 give, so
/// that ranks could get different bits; and arithmetic on 8 and 16 bits, where Open MPI 4.1's vector
/// instructions saturate and MPICH 4.0 takes u8 for signed in min and max.
bool reduces_natively(DType dtype, ReduceOp reduce);

MPI_Datatype type_of(DType dtype);
MPI_Op operation_of(ReduceOp reduce);

}  // namespace medley::mpi

// Which reductions MPI does as Medley promises them, and MPI's handles for them.
#pragma once

#include <mpi.h>

#include <medley/types.hpp>

namespace medley::mpi {

/// Whether MPI's own type and operation give what Medley promises. Not: f16 and bf16, which MPI lacks; bool,
/// whose sum is a byte's in MPI; avg; and min and max of floats, where MPI leaves open what NaN and -0 give,
/// so that ranks could get different bits.
bool reduces_natively(DType dtype, ReduceOp reduce);

MPI_Datatype type_of(DType dtype);
MPI_Op operation_of(ReduceOp reduce);

}  // namespace medley::mpi

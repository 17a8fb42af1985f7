// Which reductions MPI performs as Medley guarantees them, and MPI's handles for them.
#pragma once

#include <mpi.h>

#include <medley/types.hpp>

namespace medley::mpi {

/// Whether MPI's own type and operation give the result that Medley guarantees. Not: f16 and bf16, which MPI lacks;
/// bool, whose sum is a byte's in MPI; avg; min and max of floats, where MPI does not define NaN and -0, so that ranks
/// could get different bits; and arithmetic on 8 and 16 bits, where Open MPI 4.1's vector instructions saturate and
/// MPICH 4.0 treats u8 as signed in min and max.
bool reduces_natively(DType dtype, ReduceOp reduce);

MPI_Datatype type_of(DType dtype);
MPI_Op operation_of(ReduceOp reduce);

}  // namespace medley::mpi

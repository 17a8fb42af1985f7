// The interface between the two objects of a variant: what the plugin calls in the body that it has loaded.
#pragma once

#include <medley/backend.hpp>
#include <memory>

namespace medley::mpi {

/// Why ranks that are not in an MPI job cannot use mpi, and what to do.
inline constexpr const char* how_to_start =
    "no MPI launcher started these ranks; start them with mpirun, under Slurm with srun --mpi=pmix (or pmi2, as srun --mpi=list says), "
    "or with medley run -n N --backends mpi";

/// `in_a_job`: whether a launcher or the application has made this process part of an MPI job.
using CreateFunction = std::unique_ptr<Backend>(const BackendParams& params, bool in_a_job);
inline constexpr const char* create_symbol = "medley_mpi_create";

}  // namespace medley::mpi

// Which rank of MPI_COMM_WORLD each rank of a context is, and what ranks must know of each other before they
// use MPI.
#pragma once

#include <medley/backend.hpp>
#include <string>
#include <vector>

namespace medley::mpi {

struct Members {
  std::vector<int> mpi_ranks;  ///< by world rank of the context
};

/// Exchanged through the context's store: a context's ranks need not be numbered as MPI's. Throws when they
/// are not in one MPI job.
Members meet_members(const BackendParams& params);

/// Tells the others that this rank cannot take part, so that nobody waits for it.
void tell_failure(const BackendParams& params, const std::string& why);

}  // namespace medley::mpi

// Which rank of MPI_COMM_WORLD each rank of a context is, and what ranks exchange before they use MPI.
#pragma once

#include <medley/backend.hpp>
#include <string>
#include <vector>

namespace medley::mpi {

struct Members {
  std::vector<int> mpi_ranks;  ///< by world rank of the context
};

/// Exchanged through the context's store: a context may number its ranks differently from MPI. Throws when they are not
/// in one MPI job.
Members meet_members(const BackendParams& params);

/// Announces that this rank cannot take part, so that no rank waits for it.
void tell_failure(const BackendParams& params, const std::string& why);

}  // namespace medley::mpi

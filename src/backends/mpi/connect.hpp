// Makes the communicators of a comm. MPI's calls for that block until every member has entered, so a rank enters only
// when every member is about to, and no member is in two of them at once.
#pragma once

#include <medley/backend.hpp>

#include "backends/mpi/lane.hpp"
#include "backends/mpi/members.hpp"

namespace medley::mpi {

/// `mpi_ranks` are the members' ranks in MPI_COMM_WORLD; `turns` is a store that all comms of the context share.
Communicators connect_members(const CommParams& params, const std::vector<int>& mpi_ranks, Store& turns);

}  // namespace medley::mpi

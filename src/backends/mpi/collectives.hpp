// MPI's non-blocking collectives, started for a call. Used by the lane, under the library's lock.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <medley/backend.hpp>

#include "backends/mpi/transfer.hpp"

namespace medley::mpi {

/// A communicator, as a collective of one of its ranks uses it.
struct CommView {
  MPI_Comm comm;
  int rank, size;
  std::int64_t chunk;  ///< elements or bytes per MPI call, all ranks together
};

/// Whether MPI supports it. Not the rooted v-collectives: only the root knows their size, so ranks could not agree on
/// what to do beyond MPI's int offsets. Nor reduce_scatterv, whose parts need not be adjacent, as MPI's must.
bool collective_is_native(Op op);

void start_collective(const CommView& view, const Call& call, MpiTransfer& transfer);

/// The v-collectives (parts.cpp).
void all_gatherv(const CommView& view, const Call& call, MpiTransfer& transfer);
void all_to_allv(const CommView& view, const Call& call, MpiTransfer& transfer);
void broadcast_bytes(const CommView& view, void* data, std::int64_t bytes, int root, MpiTransfer& transfer);

inline std::byte* bytes_at(const void* base, std::int64_t bytes) {
  return static_cast<std::byte*>(const_cast<void*>(base)) + bytes;
}

}  // namespace medley::mpi

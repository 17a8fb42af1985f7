// How ranks announce that a comm was aborted: one small message to every peer, which waiting peers poll for.
#pragma once

#include <mpi.h>

#include <medley/backend.hpp>
#include <optional>

#include "backends/mpi/library.hpp"

namespace medley::mpi {

/// Called under the library's lock.
class Mailbox {
 public:
  /// Above the tags of filled-in collectives (0 to internal_tags - 1 on their communicator).
  static constexpr int tag = internal_tags;

  Mailbox(MPI_Comm comm, int rank, int size) : comm_(comm), rank_(rank), size_(size) {}
  void tell_everyone(const Error& why, Library& library) noexcept;
  /// What a peer has announced.
  std::optional<Error> look();

 private:
  MPI_Comm comm_;
  int rank_, size_;
};

}  // namespace medley::mpi

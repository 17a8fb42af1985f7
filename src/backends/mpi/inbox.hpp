// Receives of a lane that have no message yet, in the order they were started. Used by the lane and its
// transfers; look_for() under the library's lock.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace medley::mpi {

class MpiTransfer;

/// What a receive asks for.
struct Wanted {
  MPI_Comm comm = MPI_COMM_NULL;
  int source = MPI_ANY_SOURCE;
  int tag = 0;
};

/// A message that MPI has handed out and nobody else can get.
struct Arrival {
  MPI_Message message = MPI_MESSAGE_NULL;
  int source = 0;
  std::int64_t bytes = 0;
};

/// Receives are not given to MPI as they start: Open MPI 4.1 lets a message above its eager limit (4 KiB
/// between ranks of one host) run over the end of a receive that is too short. So a message is matched first,
/// which tells its length, and received then.
class Inbox {
 public:
  void add(MpiTransfer* receive) { waiting_.push_back(receive); }
  void remove(MpiTransfer* receive) noexcept { std::erase(waiting_, receive); }
  /// Takes messages that fit the receive until it has one of them. Each goes to the first receive that it
  /// fits, which is how MPI orders them.
  bool look_for(MpiTransfer& receive);

 private:
  std::vector<MpiTransfer*> waiting_;
};

}  // namespace medley::mpi

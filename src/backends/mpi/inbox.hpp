// Receives of a lane that have no message yet, in start order. Used by the lane and its transfers; look_for() under the library's lock.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace medley::mpi {

class MpiTransfer;

/// The matching criteria of a receive.
struct Wanted {
  MPI_Comm comm = MPI_COMM_NULL;
  int source = MPI_ANY_SOURCE;
  int tag = 0;
};

/// A message that MPI has matched (MPI_Improbe): no other receive can get it.
struct Arrival {
  MPI_Message message = MPI_MESSAGE_NULL;
  int source = 0;
  std::int64_t bytes = 0;
};

/// Receives are not posted to MPI as they start: in Open MPI 4.1 a message above the eager limit (4 KiB between ranks of one host)
/// overruns a receive that is too short. So a message is matched first, which gives its length, and received then.
class Inbox {
 public:
  void add(MpiTransfer* receive) { waiting_.push_back(receive); }
  void remove(MpiTransfer* receive) noexcept { std::erase(waiting_, receive); }
  /// Takes matching messages until this receive has one. Each goes to the first receive that it matches, as MPI orders them.
  bool look_for(MpiTransfer& receive);

 private:
  std::vector<MpiTransfer*> waiting_;
};

}  // namespace medley::mpi

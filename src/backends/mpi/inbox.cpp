#include "backends/mpi/inbox.hpp"

#include <algorithm>

#include "backends/mpi/errors.hpp"
#include "backends/mpi/transfer.hpp"

namespace medley::mpi {
namespace {

bool fits(const Wanted& wanted, MPI_Comm comm, int source, int tag) {
  return wanted.comm == comm && wanted.tag == tag &&
         (wanted.source == source || wanted.source == MPI_ANY_SOURCE);
}

}  // namespace

bool Inbox::look_for(MpiTransfer& receive) {
  while (receive.unmatched()) {
    const Wanted wanted = receive.wanted();
    int arrived = 0;
    Arrival arrival;
    MPI_Status status;
    check(MPI_Improbe(wanted.source, wanted.tag, wanted.comm, &arrived, &arrival.message, &status),
          "MPI_Improbe");
    if (!arrived) return false;
    MPI_Count bytes = 0;
    check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
    arrival.source = status.MPI_SOURCE;
    arrival.bytes = bytes;
    const auto first = std::find_if(waiting_.begin(), waiting_.end(), [&](const MpiTransfer* waiting) {
      return fits(waiting->wanted(), wanted.comm, arrival.source, wanted.tag);
    });
    MpiTransfer* owner = *first;  // the receive itself, if no earlier one
    waiting_.erase(first);
    owner->take(arrival);
  }
  return true;
}

}  // namespace medley::mpi

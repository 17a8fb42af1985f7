// MPICH over UCX: what UCX does when a process whose memory it reads has died. Used by Library::start().
#pragma once

namespace medley::mpi {

/// UCX copies large messages straight out of the sender's memory (process_vm_readv). When the sender has
/// died, or has given its comm up and freed that memory, UCX ends this process with SIGABRT, since MPICH asks
/// for no error handling. From here on MPI's call comes back with an error instead, and a rank that has died
/// is lost, as if the control connection had said so (Library::lose_process). Other failures still end the
/// process. Nothing happens where UCX is not loaded.
void survive_dead_peers();

}  // namespace medley::mpi

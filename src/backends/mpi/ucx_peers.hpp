// MPICH over UCX: handles the death of a process whose memory UCX reads. Used by Library::start().
#pragma once

namespace medley::mpi {

/// UCX copies large messages directly from the sender's memory (process_vm_readv). When the sender has died, or has
/// aborted its comm and freed that memory, UCX ends this process with SIGABRT, since MPICH requests no error handling.
/// With this handler the MPI call returns an error instead, and a rank that has died is lost, as if the control
/// connection had reported it (Library::lose_process). Other failures still end the process. Does nothing where UCX is
/// not loaded.
void survive_dead_peers();

}  // namespace medley::mpi

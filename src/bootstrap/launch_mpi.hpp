// What the launcher needs to know about mpirun, and how it passes a rank's output streams to it.
#pragma once

#include <string>
#include <vector>

namespace medley {

/// Whether a comma-separated list of backends contains "mpi", or a pair or split with it.
bool lists_mpi(const std::string& backends);

/// mpirun and its options for `ranks` local ranks; Open MPI's or Hydra's, told by its version text.
/// MEDLEY_MPIRUN names another mpirun. One rank's end must not end the others: that is the launcher's
/// decision. `bind`: mpirun gives each rank a core of its own.
std::vector<std::string> mpirun_command(int ranks, bool bind);

/// Passes two descriptors over a Unix socket.
void send_descriptors(int socket, int first, int second);
bool receive_descriptors(int socket, int& first, int& second);

}  // namespace medley

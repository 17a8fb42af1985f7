// Which MPI a process uses: the one it is linked to or has initialised, otherwise the one whose launcher started it.
// The plugins of all variants call this and get the same answer; nothing here needs an MPI.
#pragma once

#include <optional>
#include <string>

namespace medley::mpi {

enum class Flavour { open_mpi, mpich };

const char* name(Flavour flavour);

struct Evidence {
  Flavour flavour;
  std::string because;     ///< "this program is linked with Open MPI"
  bool has_ranks = false;  ///< whether it also shows that an MPI job exists: a launcher, or MPI is running
};

/// Nothing when neither the process nor its environment indicates an MPI. MEDLEY_MPI=openmpi or mpich decides where the
/// launcher does not (srun, say).
std::optional<Evidence> find_mpi_of_process();

/// Whether a launcher other than MPI's started several ranks, including this process.
bool started_as_one_of_several();

}  // namespace medley::mpi

// Which MPI a process uses: the one it is linked to or has initialised, otherwise the one whose launcher
// started it. The plugins of all variants ask here and come to the same answer; nothing here needs an MPI.
#pragma once

#include <optional>
#include <string>

namespace medley::mpi {

enum class Flavour { open_mpi, mpich };

const char* name(Flavour flavour);

struct Evidence {
  Flavour flavour;
  std::string because;     ///< "this program is linked with Open MPI"
  bool has_ranks = false;  ///< whether it also says that an MPI job exists: a launcher, or MPI is running
};

/// Nothing when neither the process nor its environment knows an MPI. MEDLEY_MPI=openmpi or mpich decides
/// where the launcher does not (srun, say).
std::optional<Evidence> find_mpi_of_process();

/// Whether another launcher than an MPI's started several ranks, this process among them.
bool started_as_one_of_several();

}  // namespace medley::mpi

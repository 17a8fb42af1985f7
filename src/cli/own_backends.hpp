// mpi works only on ranks that MPI started. The commands that use all backends say so where it is missing.
#pragma once

#include <optional>
#include <string>

#include "bootstrap/environment.hpp"

namespace medley::cli {

/// Writes a line to stderr if `listed`, a command's --backends, is empty and mpi would work but for how the ranks are
/// started: by the launcher of `place`, or by this command (no place). Ranks that this command started are silent,
/// since it has said so itself.
///
/// With mpi in --backends the command starts its ranks through mpirun. That is not the default: inside a Slurm
/// allocation mpirun may place ranks on other hosts, and it need not be installed where the library is.
void note_left_out(const std::string& listed, const std::optional<Place>& place);

}  // namespace medley::cli

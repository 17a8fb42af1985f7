// The backends that a command's --backends names, or all: whether they work on its ranks. Used by the commands that run on
// ranks, before they start any.
#pragma once

#include <optional>
#include <string>

#include "bootstrap/environment.hpp"

namespace medley::cli {

/// Throws Error(invalid) if one of `listed`, a command's --backends, does not work on this host.
void check_backends_here(const std::string& listed);

/// Writes a line to stderr if `listed` is empty and mpi would work but for how the ranks are started: by the launcher of
/// `place`, or by this command (no place). Ranks that this command started are silent, since it has said so itself.
///
/// With mpi in --backends the command starts its ranks through mpirun. That is not the default: inside a Slurm
/// allocation mpirun may place ranks on other hosts, and it need not be installed where the library is.
void note_left_out(const std::string& listed, const std::optional<Place>& place);

}  // namespace medley::cli

// Commands that run on ranks: they join those a launcher started, or start `-n` of their own on this host.
#pragma once

#include <functional>
#include <string>

namespace medley::cli {

/// Runs `body` on the ranks a launcher made or, without one, starts this same command `ranks` times: through mpirun
/// where `backends`, the command's --backends, lists mpi. Returns the exit status.
int on_ranks(int ranks, const std::string& backends, const std::function<int()>& body);

}  // namespace medley::cli

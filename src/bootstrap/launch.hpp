// Starts the ranks of a job on this host, forwards their output and signals, and ends them together.
// Used by `medley run`, and by the commands that start their own ranks.
#pragma once

#include <medley/export.hpp>

#include <chrono>
#include <string>
#include <vector>

namespace medley {

/// Where ranks run: each on a core of its own where there are enough, or wherever the kernel puts them.
enum class Bind { none, core };

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> command;       ///< the program, searched in PATH, and its arguments
  std::string backends;                   ///< for MEDLEY_BACKENDS; "" leaves it to the program. With mpi: uses mpirun
  bool prefix = true;                     ///< each line of output starts with "[rank] "
  std::chrono::milliseconds grace{5000};  ///< between one rank's failure and ending the others
  bool keep_going = false;                ///< one rank's failure does not end the others
  Bind bind = Bind::none;
};

/// Runs the job to its end and returns the exit status: 0, or that of the first rank that failed (128 + signal
/// for a rank killed by a signal). A command that cannot be started is an Error of kind invalid.
MEDLEY_API int launch(const LaunchOptions& options);

/// The body of a rank that mpirun started for medley run: receives its output streams from the launcher's socket
/// `door`, runs the program and reports its status. Returns the exit status.
MEDLEY_API int report_to_launcher(const std::string& door, const std::vector<std::string>& command);

}  // namespace medley

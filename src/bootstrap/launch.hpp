// Starts the ranks of a job on this host, carries their output and signals, and ends them together.
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
  std::vector<std::string> command;  ///< the program, found along PATH, and its arguments
  std::string backends;  ///< for MEDLEY_BACKENDS; "" leaves it to the program. With mpi: uses mpirun
  bool prefix = true;    ///< each line of output starts with "[rank] "
  std::chrono::milliseconds grace{5000};  ///< between one rank's failure and the end of the others
  bool keep_going = false;                ///< one rank's failure does not end the others
  Bind bind = Bind::none;
};

/// Runs the job to its end and gives the exit status: 0, or that of the first rank that failed (128 + signal
/// for a rank ended by one). What cannot be started is an Error of kind invalid.
MEDLEY_API int launch(const LaunchOptions& options);

/// What a rank does that mpirun started for medley run: takes its output streams from the launcher at `door`,
/// runs the program and reports how it ended. Gives the status to exit with.
MEDLEY_API int report_to_launcher(const std::string& door, const std::vector<std::string>& command);

}  // namespace medley

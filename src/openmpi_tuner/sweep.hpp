// Measures the algorithms of Open MPI's blocking collectives (component coll/tuned) and writes the fastest as a file of
// its dynamic rules. Behind `medley tune --export openmpi`; built into a plugin of its own, which alone is linked to
// Open MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace medley::openmpi_tuner {

struct Algorithm {
  int number = 0;  ///< Open MPI's; 0: its own choice
  std::string name;
};

struct Timing {
  Algorithm algorithm;
  double low_us = 0, median_us = 0, high_us = 0;  ///< quartiles of the slowest rank's time
};

/// One collective of one size on all ranks of the job. The first timing is that of Open MPI's own choice.
struct Cell {
  std::string collective;  ///< as in coll_tuned_NAME_algorithm
  int ranks = 0;
  std::int64_t bytes = 0;  ///< as Open MPI counts them in its rules: of the whole tensor
  std::vector<Timing> timings;
};

struct SweepRequest {
  std::vector<std::string> collectives;  ///< of all_collectives()
  std::vector<std::int64_t> sizes;
  double seconds = 60;
};

struct SweepHooks {
  std::function<void(const std::string& now, double part)> progress;  ///< on rank 0, before each cell
  std::function<bool()> stop;                                         ///< asked on rank 0, before each cell
};

struct SweepResult {
  int rank = 0;
  std::string library;      ///< Open MPI's version
  std::vector<Cell> cells;  ///< on rank 0
};

/// Those whose algorithms can be measured and chosen by size.
const std::vector<std::string>& all_collectives();

/// The name of the function that the plugin exports, and its type. Collective over all ranks that mpirun or srun
/// started; it starts and ends MPI. Throws Error(unavailable) where the library is not Open MPI.
inline constexpr const char* sweep_symbol = "medley_openmpi_sweep";
using Sweep = void(const SweepRequest& request, const SweepHooks& hooks, SweepResult& result);

/// Loads the plugin and runs the sweep. Throws Error(unavailable) that says what is missing.
SweepResult run_sweep(const SweepRequest& request, const SweepHooks& hooks);

/// The algorithm to use: another than Open MPI's own choice only if it is clearly faster, by 5 % and beyond the
/// quartiles.
const Timing& best(const Cell& cell);

/// A file for coll_tuned_dynamic_rules_filename. Communicators of other sizes than the measured one keep Open MPI's own
/// choice.
std::string rules_file(const SweepResult& result);

}  // namespace medley::openmpi_tuner

#include "bootstrap/environment.hpp"

#include <cstdlib>
#include <medley/error.hpp>
#include <utility>

#include "bootstrap/environment_parts.hpp"

namespace medley {

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

const char* name(Place::Source source) noexcept {
  switch (source) {
    case Place::Source::alone: return "no launcher";
    case Place::Source::medley: return "MEDLEY_RANK";
    case Place::Source::torchrun: return "torchrun";
    case Place::Source::open_mpi: return "Open MPI";
    case Place::Source::mpich: return "MPICH";
    case Place::Source::slurm: return "Slurm";
  }
  return "unknown";
}

std::optional<Place> find_place(const Environment& environment) {
  const Variables variables(environment);
  std::optional<Found> found = from_medley(variables);
  // Scripts export WORLD_SIZE and MASTER_ADDR before srun or mpirun, so a partial set of torchrun's variables is an
  // error only when no other launcher is found.
  std::string half_set;
  if (!found) found = from_torchrun(variables, half_set);
  if (!found) found = from_open_mpi(variables);
  if (!found) found = from_mpich(variables);
  if (!found) found = from_slurm(variables);
  if (found) return settle_store(variables, std::move(*found));
  if (!half_set.empty()) throw Error(ErrorKind::invalid, half_set);
  if (variables.has("MEDLEY_STORE")) {
    throw Error(ErrorKind::invalid,
                "MEDLEY_STORE is set but nothing says which rank this is: set MEDLEY_RANK and "
                "MEDLEY_WORLD_SIZE too, or "
                "start with medley run, torchrun, mpirun or srun");
  }
  return std::nullopt;
}

}  // namespace medley

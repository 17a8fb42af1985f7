// A process's rank and job, read from the environment of whichever launcher started it. Used by Context and by
// commands that join existing ranks. docs/launching.md lists every variable.
#pragma once

#include <medley/export.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace medley {

/// Looks up one environment variable; tests pass their own. An empty value counts as unset.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// The environment of this process.
MEDLEY_API Environment process_environment();

/// A process's rank in a job, and how it reaches the job's store. Default: the only rank of a job of one.
struct Place {
  enum class Source : std::uint8_t { alone, medley, torchrun, open_mpi, mpich, slurm };

  int rank = 0;
  int size = 1;
  int local_rank = -1;  ///< among the ranks of this host; -1: the launcher does not say
  Source source = Source::alone;

  /// Whether every rank is known to run on this host; the store then stays off the network.
  bool one_host = true;
  /// A name or address, or "@name": an abstract Unix socket that admits this user's processes only, used on
  /// one host when no port was given (no port collisions, no file left behind). Empty: not given.
  std::string store_host;
  std::uint16_t store_port = 0;  ///< the first port to try
  /// Ports tried in order; more than 1 where the port is derived and another program may have taken it. The token
  /// decides which of them is the job's store.
  int store_ports = 1;
  bool store_served = false;  ///< the launcher serves the store; otherwise rank 0 does
  /// The secret that admits a rank. Empty: not given; it must be filled in (from torch's store or
  /// MPI's broadcast) before connect_store().
  std::string token;
};

/// The spelling of a source in messages, such as "Open MPI".
MEDLEY_API const char* name(Place::Source source) noexcept;

/// First match wins: MEDLEY_*, torchrun, Open MPI, MPICH, Slurm. Empty when no launcher started this
/// process, which is then the only rank. Incomplete or contradictory variables throw an Error that names the
/// variable.
MEDLEY_API std::optional<Place> find_place(const Environment& environment);

}  // namespace medley

// The kind of machine that a route table was measured on: hardware and library versions, never host names, so that a
// table stays valid on the next allocation of the same cluster. Written by the tuner, compared when a context loads a
// table.
#pragma once

#include <map>
#include <string>

#include <medley/export.hpp>

namespace medley::route {

struct Machine {
  std::string cpu;                                 ///< model, as the kernel names it
  int cores = 0;                                   ///< of one host
  std::string gpu{};                               ///< such as "8 x NVIDIA H100"; empty: none
  std::string fabric{};                            ///< such as "2 x mlx5"; empty: sockets only
  std::map<std::string, std::string> libraries{};  ///< version by backend

  bool operator==(const Machine&) const = default;
};

/// The hardware of this host; the caller adds the libraries.
MEDLEY_API Machine this_machine();

/// Why a table from `theirs` does not fit `here`, as part of a sentence; empty if it does. Compares libraries that both
/// have.
MEDLEY_API std::string misfit(const Machine& theirs, const Machine& here);

}  // namespace medley::route

// What a context decided about routes in the running job (ContextOptions::online).
#pragma once

#include <cstdint>
#include <medley/types.hpp>
#include <string>

namespace medley {

/// A route that was changed, or measured again and kept. Equal on all ranks of the comm.
struct RouteDecision {
  std::string comm{};
  Op op{};
  std::int64_t from_bytes = 0, to_bytes = 0;  ///< sizes of the tensors it applies to, both inclusive
  std::uint64_t sequence = 0;                 ///< the number of the comm's collective from which on it applies
  /// False: `from` was kept and `to` is the route it was compared with last
  bool changed = false;
  std::string from{}, to{};  ///< routes, such as "mpi/ring"
  std::string reason{};
};

}  // namespace medley

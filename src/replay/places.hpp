// The placement of a world's ranks, which decides how operations travel and what they share. Used by predictions.
#pragma once

#include <medley/medley.hpp>
#include <vector>

#include "route/table.hpp"

namespace medley::replay {

/// For each rank of the world.
struct Places {
  std::vector<int> hosts;     ///< the number of its host, as routes see hosts
  std::vector<int> machines;  ///< the number of its machine: containers are separate hosts that share a machine's cores
  std::vector<int> cores;     ///< that the ranks of its machine may use together
};

/// Collective.
Places places_of(Comm& world);

/// The hosts of these ranks; `hosts` as in Places.
std::vector<int> hosts_of_ranks(const std::vector<int>& who, const std::vector<int>& hosts);

}  // namespace medley::replay

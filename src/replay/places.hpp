// Where the ranks of a world run: what decides how operations travel, and what they share. Used by
// predictions.
#pragma once

#include <medley/medley.hpp>
#include <vector>

namespace medley::replay {

/// For each rank of the world.
struct Places {
  std::vector<int> hosts;     ///< the number of its host, as routes see hosts
  std::vector<int> machines;  ///< of its machine: containers are hosts of their own that share its cores
  std::vector<int> cores;     ///< that the ranks of its machine may use together
};

/// Collective.
Places places_of(Comm& world);

}  // namespace medley::replay

// Where the ranks of a world run: what decides how operations travel, and what they share. Used by
// predictions.
#pragma once

#include <medley/medley.hpp>
#include <string_view>
#include <vector>

#include "route/table.hpp"

namespace medley::replay {

/// For each rank of the world.
struct Places {
  std::vector<int> hosts;     ///< the number of its host, as routes see hosts
  std::vector<int> machines;  ///< of its machine: containers are hosts of their own that share its cores
  std::vector<int> cores;     ///< that the ranks of its machine may use together
};

/// Collective.
Places places_of(Comm& world);

/// Of a comm of these ranks; `hosts` as in Places.
route::Shape shape_of(const std::vector<int>& who, const std::vector<int>& hosts);

/// What carries the operations of such a comm when a backend is asked for: one made of two, such as shm+mpi, is its first half
/// within a host, and its second where no two ranks share one.
std::string_view backend_on(const route::Shape& shape, std::string_view backend);

}  // namespace medley::replay

// The fastest routes of a table by operation and size. What `medley tune` prints.
#pragma once

#include <string>
#include <vector>

#include "route/table.hpp"

namespace medley::tune {

/// One range of sizes that one route wins.
struct Winner {
  route::Shape shape;
  Memory memory{};
  Op op{};
  route::DTypeClass dtype{};
  std::int64_t from = 0, to = 0;  ///< INT64_MAX: all larger sizes
  Choice route;
  /// In the row where that is largest, the time of the fastest route over another backend over its own. Below 1 it is
  /// slower alone, as routes of a step can be. 0: no other backend was measured.
  double ahead = 0;
  Choice rival{};  ///< in that row
};

/// By shape, memory, operation, class of element types and size.
std::vector<Winner> winners(const route::Table& table);

}  // namespace medley::tune

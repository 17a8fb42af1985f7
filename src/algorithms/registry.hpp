// The names of the algorithms, and the default algorithm of each operation.
// Used by the filled lane, by tests and by tools that list the names.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/job.hpp"

namespace medley::algorithms {

/// The backend's own implementation.
inline constexpr std::string_view native = "native";

struct Algorithm {
  Op op;
  std::string_view name;
  Task (*run)(Job&);
};

/// The algorithm of this name; null if the operation has none.
const Algorithm* find(Op op, std::string_view name);

/// Chooses by values that are equal on all ranks: the operation, the size of the tensor, the number of
/// ranks.
const Algorithm& choose(const Call& call, int ranks);

/// Names of all algorithms that fill in an operation, in alphabetical order.
MEDLEY_API std::vector<std::string_view> names(Op op);

}  // namespace medley::algorithms

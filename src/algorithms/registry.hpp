// The names of the algorithms, and which one an operation takes when nobody names one.
// Asked by the filled lane, by tests and by tools that list what can be named.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/job.hpp"

namespace medley::algorithms {

/// What a backend does itself.
inline constexpr std::string_view native = "native";

struct Algorithm {
  Op op;
  std::string_view name;
  Task (*run)(Job&);
};

/// The one of this name; null if the operation has none.
const Algorithm* find(Op op, std::string_view name);

/// A choice by values that are equal on all ranks: the operation, the size of the tensor, the number of
/// ranks.
const Algorithm& choose(const Call& call, int ranks);

/// Names of all that fill in an operation, in alphabetical order.
MEDLEY_API std::vector<std::string_view> names(Op op);

}  // namespace medley::algorithms

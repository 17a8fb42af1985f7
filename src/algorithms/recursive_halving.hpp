// The halving phase, shared by reduce_scatter and by Rabenseifner's all_reduce and reduce.
#pragma once

#include <vector>

#include "algorithms/fold.hpp"

namespace medley::algorithms {

/// Where the parts of ranks 0 to n lie when they are laid side by side.
std::vector<std::int64_t> side_by_side(const Parts& parts, int n);

/// Combines `partial` (wire type, all parts side by side, loaded) over the survivors; afterwards survivor i
/// holds the combined parts of ranks fold.first(i) to fold.first(i+1)-1, where they lay. Others return at
/// once.
Task halve(Job& job, const Fold& fold, const Combiner& combiner, std::byte* partial,
                 const std::vector<std::int64_t>& starts);

}  // namespace medley::algorithms

// The halving phase, shared by reduce_scatter and by Rabenseifner's all_reduce and reduce.
#pragma once

#include <vector>

#include "algorithms/fold.hpp"

namespace medley::algorithms {

/// The offsets of the parts of ranks 0 to n when they are packed contiguously.
std::vector<std::int64_t> side_by_side(const Parts& parts, int n);

/// Combines `partial` (wire type, all parts contiguous, loaded) over the survivors; afterwards survivor i
/// holds the combined parts of ranks fold.first(i) to fold.first(i+1)-1, at their offsets. Other ranks return at
/// once.
Task halve(Job& job, const Fold& fold, const Combiner& combiner, std::byte* partial,
           const std::vector<std::int64_t>& starts);

}  // namespace medley::algorithms

// Phases of the ring, also used by broadcast and all_reduce.
#pragma once

#include "algorithms/job.hpp"

namespace medley::algorithms {

/// Every rank's slice of `input` is combined on that rank, rounded, and written to `result`.
Task ring_reduce_scatter_phase(Job& job, const std::byte* input, Parts parts, std::byte* result);

/// Every rank's own slice of `buffer` is passed on until all have all. Rank `complete` has all already: its
/// buffer is only read.
Task ring_all_gather_phase(Job& job, std::byte* buffer, Parts parts, int complete = -1);

}  // namespace medley::algorithms

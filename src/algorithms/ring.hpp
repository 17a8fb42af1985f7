// Phases of the ring, also used by broadcast and all_reduce.
#pragma once

#include "algorithms/job.hpp"

namespace medley::algorithms {

/// Combines every rank's slice of `input` on that rank, rounds it, and writes it to `result`.
Task ring_reduce_scatter_phase(Job& job, const std::byte* input, Parts parts, std::byte* result);

/// Forwards every rank's own slice of `buffer` until all ranks have all. Rank `complete` already has all: its
/// buffer is only read.
Task ring_all_gather_phase(Job& job, std::byte* buffer, Parts parts, int complete = -1);

}  // namespace medley::algorithms

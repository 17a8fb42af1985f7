// Simulates the pipeline's stages together: a receive waits for its send, a collective across stages for all
// its members. Used by cost.hpp; with one stage it is a sequential walk.
#pragma once

#include <vector>

#include "cost/stage.hpp"

namespace medley::cost {

struct StageTime {
  double end_us = 0;
  Spent spent{};       ///< sums to end_us
  double host_us = 0;  ///< when the host has issued everything
};

/// Throws Error(invalid) naming the stage when the stages deadlock.
std::vector<StageTime> run_pipeline(const std::vector<StageProgram>& stages);

}  // namespace medley::cost

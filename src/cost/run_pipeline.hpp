// Runs the pipeline's stages side by side: a receive waits for its send, a collective across stages for all
// its members. Used by cost.hpp; with one stage it is a plain walk.
#pragma once

#include <vector>

#include "cost/stage.hpp"

namespace medley::cost {

struct StageTime {
  double end_us = 0;
  Spent spent{};       ///< sums to end_us
  double host_us = 0;  ///< until when the host has issued everything
};

/// Throws Error(invalid) naming the stage when the stages wait for each other forever.
std::vector<StageTime> run_pipeline(const std::vector<StageProgram>& stages);

}  // namespace medley::cost

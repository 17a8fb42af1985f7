// How long a step of a schedule should take before it runs: computation as replay is told, operations as a
// route table measured them, all ranks side by side. `medley replay` shows it beside the time the step took.
#pragma once

#include "replay/operation_times.hpp"
#include "replay/replay.hpp"

namespace medley::replay {

struct Prediction {
  double step_us = 0;       ///< until the slowest rank is done
  std::size_t unknown = 0;  ///< operations that the table says nothing about; they count as none
};

/// `hosts[r]` is the number of the host of rank r. A schedule whose ranks wait for each other for ever is
/// refused.
Prediction predict(const WorldSchedule& schedule, const std::vector<int>& hosts, const ReplayOptions& options,
                   OperationTimes& times);

/// Seconds that an action's computation is made to take.
double compute_seconds(const Action& action, const ReplayOptions& options);

}  // namespace medley::replay

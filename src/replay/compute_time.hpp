// Computation as time that passes: a GPU is at work and the host's cores are free. Used by replay and by its
// predictions.
#pragma once

#include "replay/replay.hpp"

namespace medley::replay {

/// Seconds that an action's computation is made to take.
double compute_seconds(const Action& action, const ReplayOptions& options);

/// Lets this thread sleep so long, and spin only for what a sleep cannot tell.
void pass_time(double seconds);

}  // namespace medley::replay

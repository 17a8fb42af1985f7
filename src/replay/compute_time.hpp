// Simulates computation as elapsed time: a GPU computes while the host's cores are free. Used by replay and by its
// predictions.
#pragma once

#include "replay/replay.hpp"

namespace medley::replay {

/// Seconds that an action's computation takes in the simulation.
double compute_seconds(const Action& action, const ReplayOptions& options);

/// Sleeps for this long, and spins only for what a sleep cannot resolve.
void pass_time(double seconds);

}  // namespace medley::replay

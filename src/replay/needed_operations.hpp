// What the ranks of a schedule send, so that the tuner measures only that. Behind `medley tune --for`.
#pragma once

#include "replay/schedule_file.hpp"
#include "tune/tuner.hpp"

namespace medley::replay {

/// Each operation, element type and size once, in order of first appearance; a receive counts as its send.
std::vector<tune::NeededOperation> needed_operations(const WorldSchedule& schedule);

}  // namespace medley::replay

// One step of a recorded run as a schedule: what every rank sent, and the time it spent outside communication. `medley
// replay` runs it, and `medley tune --for` tunes it.
#pragma once

#include <nlohmann/json.hpp>

#include "trace/trace.hpp"

namespace medley::trace {

/// The step of median length on the busiest rank, of all ranks. `steps` as in find_steps(). Throws Error(invalid) if a
/// rank's trace is missing, if the source does not say who takes part in an operation, how much it moves or when it
/// ran, or if the ranks of a group differ in the collectives of the step.
///
/// Where a program waits for an asynchronous operation is known only if the wait took time. Any other operation is
/// awaited together with the next one that the program did wait for, or at the end of the step. Every part of a
/// v-collective has the same size: that of the rank that sends most.
nlohmann::ordered_json schedule_json(const Trace& trace, std::size_t steps = 0);

}  // namespace medley::trace

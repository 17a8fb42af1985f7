// How each rank runs a program's steps: in which order, from which thread, blocking or not, and when it
// waits. Called by generate(). A schedule that would not finish on the ideal machine is relaxed until it
// does.
#pragma once

#include "base/random.hpp"
#include "soak/program.hpp"

namespace medley::soak {

using core::Random;

/// Gives every rank its streams.
void schedule(Program& program, Random& random);

}  // namespace medley::soak

// How each rank goes about a program's steps: in which order, from which thread, blocking or not, when it
// waits. Filled in by generate(); whatever would not finish on the ideal machine is made more patient until
// it does.
#pragma once

#include "base/random.hpp"
#include "soak/program.hpp"

namespace medley::soak {

using core::Random;

/// Gives every rank its streams.
void schedule(Program& program, Random& random);

}  // namespace medley::soak

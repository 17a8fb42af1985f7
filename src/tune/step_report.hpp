// What tuning for a step found, in a sentence. Used by `medley tune --for` and `medley explain --step`.
#pragma once

#include <string>

#include "route/tuned_step.hpp"

namespace medley::tune {

/// Whether a mix pays, by how much and how sure that is.
std::string conclusion(const route::TunedStep& step);

}  // namespace medley::tune

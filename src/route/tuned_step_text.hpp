// The text of a tuned step inside a table's file: `step` and `auto_us` for whoever reads the medians alone, `tuned_for`
// for the rest.
#pragma once

#include <string>

#include "route/tuned_step.hpp"

namespace medley::route {

/// Lines of the table's JSON object, each with its comma.
std::string text_of(const TunedStep& step);

}  // namespace medley::route

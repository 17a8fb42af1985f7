// A recorded run, or another tool's trace, as the page shows it: the typical step of the busiest rank, and
// the timeline.
#pragma once

#include "report/fields.hpp"

namespace medley::report {

/// Throws Error(invalid) for what is not a trace.
Json read_trace(const std::string& path);

}  // namespace medley::report

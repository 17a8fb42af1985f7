// Operations of a running job that take too long or failed: who is in them, who is not, and where two comms wait for each other.
// Used by watch_report().
#pragma once

#include <vector>

#include "trace/watch.hpp"

namespace medley::trace {

constexpr double seconds_of(double ns) { return ns / 1e9; }

/// "stuck" for operations that take longer than `stuck_s`, "failed" and "mismatch".
std::vector<WatchVerdict> stuck_verdicts(const Trace& trace, double now, double stuck_s);

}  // namespace medley::trace

// Aligns the clocks of all ranks of a trace: ranks on one host share the processor's counter; hosts are
// aligned by the collectives that their ranks completed together.
#pragma once

#include "trace/trace.hpp"

namespace medley::trace {

/// Sets RankTrace::clock of every rank so that the first event of the trace is at 0, and sets
/// Trace::clock_error.
void align_clocks(Trace& trace);

}  // namespace medley::trace

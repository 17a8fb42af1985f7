// Brings the ranks of a trace onto one clock: ranks of one host share the processor's counter, hosts are
// brought together by the collectives that their ranks completed together.
#pragma once

#include "trace/trace.hpp"

namespace medley::trace {

/// Sets RankTrace::clock of every rank so that the first event of all is at 0, and Trace::clock_error.
void align_clocks(Trace& trace);

}  // namespace medley::trace

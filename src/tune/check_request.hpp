// What would fail on every rank, or only after measuring, is refused before any rank starts. Used by the commands that
// measure and by their Python functions.
#pragma once

#include "tune/bench_job.hpp"
#include "tune/tune_job.hpp"

namespace medley::tune {

// All throw Error(invalid).

/// The table for auto can be read.
void check(const BenchRequest& request);
/// The backends are libraries, and the table can be resumed and written.
void check(const TuneRequest& request);

}  // namespace medley::tune

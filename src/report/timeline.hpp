// One step of a trace as bars, for the page's timeline. Adjacent operations of one kind are merged into one bar where a
// step has more of them than a screen has pixels, so that a trace of any length makes a page that opens at once.
#pragma once

#include "report/fields.hpp"
#include "trace/summary.hpp"

namespace medley::report {

struct TimelineLimits {
  std::size_t ranks = 32;
  std::size_t bars = 1500;    ///< per rank; more are merged
  std::size_t pixels = 1200;  ///< bars closer than the step over this are merged
  int lanes = 6;              ///< per rank; further operations overlap in the last
};

/// Null for a source without times. `step` counts from 0, on every rank.
Json timeline_json(const trace::Trace& trace, std::size_t step, const TimelineLimits& limits = {});

}  // namespace medley::report

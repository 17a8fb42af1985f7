// Finds the training steps in a rank's operations: by the operations under the scope "step" that separate
// them, or by the period with which the operations repeat.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

/// Events (EventSource's indexes) from `begin` up to, but not including, `end`.
struct Step {
  std::size_t begin = 0, end = 0;
};

struct Steps {
  std::vector<Step> steps;
  std::string found_by;  ///< "scope", "mark" (the source's own), "period", "count", "nothing" (the whole
                         ///< trace is one step)
};

/// `given` steps, or 0 to detect them. With a number, operations before the first of the equal steps are left
/// out.
Steps find_steps(const Trace& trace, const RankTrace& rank, std::size_t given = 0);

/// Median time in microseconds from the first issue of one step to that of the next; 0 when fewer than two
/// steps have times.
double step_period_us(const RankTrace& rank, const Steps& steps);

/// The shortest period with which the longest range of `keys` repeats at least twice, and that range.
struct Period {
  std::size_t length = 0;  ///< 0: none
  std::size_t begin = 0, end = 0;
};
Period find_period(const std::vector<std::uint64_t>& keys);

}  // namespace medley::trace

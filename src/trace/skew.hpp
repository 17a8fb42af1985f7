// How far apart the ranks of a group arrive at its collectives, and which ranks arrive last: stragglers.
#pragma once

#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

struct Skew {
  std::uint32_t group = 0;
  Op op = Op::all_reduce;
  std::int64_t collectives = 0;                  ///< collectives that several ranks recorded
  double median_us = 0, p99_us = 0, max_us = 0;  ///< between the first and the last arrival
  int last_rank = 0;                             ///< the rank that was last most often
  double last_share = 0;                         ///< how often, as a share
  double late_us = 0;                            ///< sum of its lateness relative to the rank before it
};

/// By group and operation, the latest first; empty for a trace of one rank.
std::vector<Skew> find_skew(const Trace& trace);

}  // namespace medley::trace

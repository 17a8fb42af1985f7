// Ranks that arrive late at collectives, found by arrival times, which an all_reduce does not hide, and since
// when they do. Used by `medley watch`.
#pragma once

#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

struct Straggler {
  std::uint32_t group = 0;
  int rank = 0;
  std::size_t last = 0,
              collectives = 0;       ///< since it is late: those that waited for it, and those that waited for any rank
  double median_ns = 0, sum_ns = 0;  ///< behind the second-last rank, over those at which it was last
  double since_ns = 0;               ///< on the trace's clock
};

/// `share`: a straggler is last at no less than this share of the collectives since it is late; it was last
/// within `window_ns` before `now_ns`.
std::vector<Straggler> find_stragglers(const Trace& trace, double now_ns, double window_ns, double share);

}  // namespace medley::trace

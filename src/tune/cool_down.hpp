// What measurements do about slow libraries. Their threads (gloo's) keep running for milliseconds after their last
// operation and displace those of other ranks, which slows whatever is measured next. So slow candidates are the last
// of a round, and what follows one of them runs for a while before it counts. Used by races of routes and the search
// for a step's routes.
#pragma once

namespace medley::tune {

struct CoolDown {
  double slow_ratio;  ///< a candidate is slow from this many times the fastest one's time on,
  double slow_us;     ///< if it takes as long as this
  double rest_us;     ///< how long what follows it runs untimed
};

/// Of single operations.
inline constexpr CoolDown after_operation{.slow_ratio = 5, .slow_us = 100, .rest_us = 5'000};
/// Of a step: right after one over gloo, a step over mpi took 2.7 times its own time on 4 x 2 ranks and 16 cores. Four
/// ranks on two cores, over shm: 1.2 to 1.6 times as long after 5 ms as after 20 or more.
inline constexpr CoolDown after_step{.slow_ratio = 2, .slow_us = 0, .rest_us = 20'000};

}  // namespace medley::tune

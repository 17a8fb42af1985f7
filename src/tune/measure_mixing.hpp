// The cost of mixing: what an operation over one library adds to those over another before and after it, since its
// threads and connections are still at work. For the tuner.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

#include "route/table.hpp"
#include "tune/job_clock.hpp"

namespace medley::tune {

/// µs that alternating between two libraries costs per operation, by rounds of interleaved samples: 0 unless it is
/// surely more than nothing.
double added_by_mixing_us(const std::vector<double>& alternating_us, const std::vector<double>& apart_us,
                          int alternations);

/// On host memory, for each of these libraries beside the preferred one. Collective; the same on all ranks.
std::vector<route::MixingCost> measure_mixing(const Comm& comm, const route::Shape& shape, const std::string& preferred,
                                              const std::vector<std::string>& libraries, JobClock& clock);

}  // namespace medley::tune

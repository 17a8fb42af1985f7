// The stopwatch of a whole job. On one host it is the SampleClock: a common start on a common clock. Across hosts, whose
// clocks differ, ranks leave a barrier together and a sample is the slowest rank's own time, which misses how much later
// than the first the slowest began (up to one latency of the network). Used by bench and tune.
#pragma once

#include <array>
#include <cstdint>
#include <medley/medley.hpp>
#include <memory>
#include <vector>

#include "route/table.hpp"
#include "tune/sample_clock.hpp"

namespace medley::tune {

/// Which host each rank of a comm is on, numbered from 0 in order of appearance. Collective.
std::vector<int> hosts_of(Comm& comm);
route::Shape shape_of(const std::vector<int>& hosts);

class JobClock {
 public:
  /// Collective, as is every call below; all ranks get the same values.
  explicit JobClock(Context& context);

  template <class Operation>
  Sample time(Operation&& operation) {
    if (host_) return host_->time(operation);
    world_.barrier();
    const std::int64_t began = now_ns();
    operation();
    return agreed(now_ns() - began);
  }
  /// Seconds since the clock was made, the same on all ranks.
  double seconds() { return static_cast<double>(time([] {}).released_ns - start_ns_) / 1e9; }
  double seconds_at(const Sample& sample) const { return static_cast<double>(sample.released_ns - start_ns_) / 1e9; }
  bool across_hosts() const { return !host_; }
  const std::vector<int>& hosts() const { return hosts_; }

 private:
  Sample agreed(std::int64_t took_ns);
  Comm world_;
  std::vector<int> hosts_;
  std::unique_ptr<SampleClock> host_;
  std::int64_t made_ns_ = now_ns();   ///< on this rank's own clock
  std::int64_t start_ns_ = 0;         ///< on the job's
};

}  // namespace medley::tune

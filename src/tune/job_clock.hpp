// The stopwatch of a whole job: a common start on a common clock. On one host that is the SampleClock. Across hosts,
// messages compare each clock with rank 0's (to within the asymmetry of the two directions, microseconds), unless they
// are the same clock, as in containers on one machine. The ranks agree on a start slightly ahead; a sample lasts from
// when the last rank began until the last has finished. Used by bench and tune.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <medley/medley.hpp>
#include <memory>
#include <string>
#include <vector>

#include "route/table.hpp"
#include "tune/sample_clock.hpp"

namespace medley::tune {

/// The host of each rank of a comm, numbered from 0 in order of appearance. Collective.
std::vector<int> hosts_of(Comm& comm);

class JobClock {
 public:
  /// Collective, as is every call below; all ranks get the same values.
  explicit JobClock(Context& context);

  template <class Operation>
  Sample time(Operation&& operation) {
    if (host_) return host_->time(operation);
    await_start();
    const std::int64_t began = common_ns();
    operation();
    return agreed(began, common_ns());
  }
  /// Seconds since the clock was created, the same on all ranks.
  double seconds() {
    return static_cast<double>(time([] {}).released_ns - start_ns_) / 1e9;
  }
  double seconds_at(const Sample& sample) const { return static_cast<double>(sample.released_ns - start_ns_) / 1e9; }
  /// Whether the cores are oversubscribed, or may be: across hosts it is not known.
  bool oversubscribed() const { return !host_ || host_->oversubscribed(); }
  /// Whether the ranks have different clocks.
  bool compared() const { return compared_; }
  const std::vector<int>& hosts() const { return hosts_; }

 private:
  void choose_carrier(const Context& context);
  void compare_clocks();
  void await_start();
  Sample agreed(std::int64_t began, std::int64_t ended);
  std::int64_t common_ns() const { return now_ns() + offset_ns_; }
  Options own() const { return {.backend = carrier_}; }

  Comm world_;
  std::vector<int> hosts_;
  std::unique_ptr<SampleClock> host_;
  std::function<void()> progress_;
  std::string carrier_;  ///< the backend for the clock's own messages
  bool compared_ = false;
  std::int64_t offset_ns_ = 0;        ///< from this rank's clock to rank 0's
  std::int64_t start_ns_ = 0;         ///< when the clock was made
  std::int64_t next_ns_ = 0;          ///< the start of the current sample
  std::int64_t margin_ns_ = 200'000;  ///< between agreeing on a start and starting
};

}  // namespace medley::tune

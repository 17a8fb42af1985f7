// Predicts how long a step of a schedule takes before it runs: computation as replay simulates it, operations as they
// take in isolation, all ranks in parallel. `medley replay` shows it beside the measured time.
#pragma once

#include <functional>
#include <optional>

#include "cost/link_time.hpp"
#include "replay/operation_times.hpp"
#include "replay/places.hpp"
#include "replay/replay.hpp"

namespace medley::replay {

/// µs that an action takes in isolation, given the world ranks that take part; none: unknown.
using TimeOf = std::function<std::optional<double>(const Action&, const std::vector<int>& who)>;
/// From the cost model of a machine, with `gpus_per_host` ranks per host.
TimeOf time_on_machine(const cost::Machine& machine, double scale);
/// The same with these times of its links.
TimeOf time_on_links(cost::LinkTime links, const cost::Machine& machine, double scale);
/// From a route table.
TimeOf time_by_table(OperationTimes& times, const std::vector<int>& hosts, double scale);

struct Prediction {
  double step_us = 0;       ///< until the slowest rank finishes
  std::size_t unknown = 0;  ///< operations whose time is unknown; they count as zero
  /// All operations in an order in which ranks could run them one at a time: consistent with the schedule on every rank
  /// and in every group.
  std::vector<Meeting> order;
};

/// Concurrent operations share resources: a rank's operations share the rank, ranks of a machine its cores, if there
/// are fewer. Computation is on a GPU and takes no core. A schedule whose ranks would deadlock is refused.
Prediction predict(const WorldSchedule& schedule, const Places& places, const ReplayOptions& options,
                   const TimeOf& time_of);

}  // namespace medley::replay

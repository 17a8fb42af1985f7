// How long a step of a schedule should take before it runs: computation as replay is told, operations as they
// take alone, all ranks side by side. `medley replay` shows it beside the time the step took.
#pragma once

#include <functional>
#include <optional>

#include "cost/link_time.hpp"
#include "replay/operation_times.hpp"
#include "replay/places.hpp"
#include "replay/replay.hpp"

namespace medley::replay {

/// µs that an action takes alone, with the ranks of the world that take part; none: unknown.
using TimeOf = std::function<std::optional<double>(const Action&, const std::vector<int>& who)>;
/// As the cost model says for a machine, `gpus_per_host` neighbours to a host.
TimeOf time_on_machine(const cost::Machine& machine, double scale);
/// As a route table says.
TimeOf time_by_table(OperationTimes& times, const std::vector<int>& hosts, double scale);

struct Prediction {
  double step_us = 0;       ///< until the slowest rank is done
  std::size_t unknown = 0;  ///< operations whose time is unknown; they count as none
  /// All operations in an order in which ranks could run them one at a time: on every rank and in every group
  /// that of the schedule.
  std::vector<Meeting> order;
};

/// What runs at the same time shares what it runs on: a rank's operations share the rank, ranks of a machine
/// its cores, if there are fewer. Computation is a GPU's and takes no core. A schedule whose ranks wait for
/// each other for ever is refused.
Prediction predict(const WorldSchedule& schedule, const Places& places, const ReplayOptions& options,
                   const TimeOf& time_of);

}  // namespace medley::replay

// A schedule as a step that the tuner can run over any routes: its operations with their overlap, its computation as
// elapsed time. Behind `medley tune --for`.
#pragma once

#include <functional>
#include <memory>

#include "replay/replay.hpp"
#include "tune/tune_job.hpp"

namespace medley::replay {

/// What the ranks of a schedule send, each kind once; `hosts`: of each rank. A receive counts as its send; comms of one
/// rank send nothing.
std::vector<tune::StepOperation> operations_of(const WorldSchedule& schedule, const ReplayOptions& options,
                                               const std::vector<int>& hosts);

/// µs that the busiest rank computes.
double busiest_us(const WorldSchedule& schedule, const ReplayOptions& options);

/// Makes the step on all ranks of a context together; throws Error(invalid) where the schedule is of another number of
/// ranks.
std::function<std::unique_ptr<tune::Step>(Context&)> schedule_as_step(WorldSchedule schedule,
                                                                      const ReplayOptions& options);

/// Makes `step` what a tuning run tunes for: a built-in mix by its name, or the file of a schedule. `ranks`: of the
/// run; below 2: it has one. Throws Error(invalid) when the step cannot be read, sends nothing or needs another number of
/// ranks.
void tune_for(const std::string& step, const ReplayOptions& options, int ranks, tune::TuneRequest& request);

/// Whether operations are pending while ranks compute, so that a progress thread must drive them.
bool overlaps(const WorldSchedule& schedule);

}  // namespace medley::replay

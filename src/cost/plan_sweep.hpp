// The same plan over ranges of sequences, model sizes or layouts: the figures of the communication paper
// (volume by parallelism, message sizes, share of small messages). Used by `medley plan --sweep` and the
// Python package.
#pragma once

#include <functional>

#include "cost/plan_step.hpp"
#include "cost/sweep_axis.hpp"

namespace medley::cost {

struct SweepRequest : PlanRequest {  ///< the rank of each point is its busiest
  std::vector<SweepAxis> axes;       ///< several make a grid
  /// Points done, of how many: called on the calling thread. What it throws ends the sweep.
  std::function<void(std::size_t, std::size_t)> progress{};
};

struct SweepPoint {
  std::vector<std::string> values;  ///< one for each axis
  std::string refused;              ///< why there is no plan; the rest is then empty
  Count world = 0, rank = 0, parameters = 0;
  plan::Volume volume;
  Memory memory;
  FullestGpu fullest;
  std::optional<MachineTime> time;
};

struct SweepResult {
  Model model;
  Framework framework = Framework::textbook;
  bool timed = false;   ///< on a machine
  bool trains = false;  ///< on a given number of tokens
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;
  /// Of those that fit, the point with the most tokens per second and GPU. None where points differ in their
  /// parameters: a smaller model is not a faster layout.
  std::optional<std::size_t> fastest;
};

/// Plans every point, on all cores. A point that cannot be planned says why; an axis that is not known
/// throws.
SweepResult sweep_plans(const SweepRequest& request);
nlohmann::ordered_json to_json(const SweepResult& result);

}  // namespace medley::cost

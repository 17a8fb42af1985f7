// The plan of one rank's training step: what it sends, how much memory it takes and, on a machine, how long
// it runs. What `medley plan` prints, its sweeps collect and Python binds.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/cost.hpp"
#include "cost/memory.hpp"
#include "cost/training_time.hpp"
#include "plan/request.hpp"
#include "plan/volume.hpp"

namespace medley::cost {

struct PlanRequest : plan::StepRequest {
  std::optional<Count> rank;  ///< whose plan; none: the busiest rank
  std::string machine;        ///< as find_machine() takes it; empty: times are not predicted
  Count small = 65536;        ///< messages up to this size count as small
  double tokens = 0;          ///< of a training whose duration is asked for; 0: none; needs a machine
};

/// What a machine adds to a plan.
struct MachineTime {
  Machine machine;
  StepCost cost;
  double gpu_bytes = 0;
  bool fits = true;   ///< the fullest GPU
  std::string fit{};  ///< one clause on it
  std::optional<TrainingTime> training{};
};

struct PlanResult {
  Model model;
  Layout layout;
  Framework framework = Framework::textbook;
  std::string assumptions;
  Count rank = 0;
  Schedule schedule;
  std::vector<plan::Row> rows;
  plan::Volume volume;
  Memory memory;       ///< of the rank asked for; without one, of the fullest
  FullestGpu fullest;  ///< decides whether the layout fits
  /// Wire bytes per group that the textbook gives for the same rank; empty where the plan is the textbook's.
  std::map<std::string, double> textbook;
  double textbook_bytes = 0;  ///< of the groups that the framework uses, too
  std::optional<MachineTime> time;

  bool fits() const noexcept { return !time || time->fits; }
};

/// Throws Error(invalid) naming the option and the value.
PlanResult make_plan(const PlanRequest& request);
nlohmann::ordered_json to_json(const PlanResult& result);
/// An object of machine, step_us, …, breakdown.
nlohmann::ordered_json to_json(const MachineTime& time, const FullestGpu& fullest);
/// Why the layout does not fit the machine's GPUs.
std::string misfit_text(const PlanResult& result);

/// What plans of one request, sweep or search have in common. Throws Error(invalid) naming the option and the value.
struct PlanSetting {
  explicit PlanSetting(const PlanRequest& request);
  Framework framework;
  std::optional<Machine> machine;
  Count small = 0;
  double tokens = 0;
};

/// The same without the textbook beside it, from what is already read; `layout` is checked first.
PlanResult plan_step(const PlanSetting& setting, const Model& model, Layout layout, std::optional<Count> rank);

/// Every operation of the planned rank in order; "plan" holds the request, so that replay can plan the other
/// ranks.
nlohmann::ordered_json schedule_json(const PlanRequest& request, const PlanResult& result);
/// The schedules of all ranks, at most 1024.
nlohmann::ordered_json all_schedules_json(const PlanResult& result);

}  // namespace medley::cost

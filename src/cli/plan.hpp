// What the files of `medley plan` share: the request as read from the command line and its outcome.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cost/cost.hpp"
#include "cost/memory.hpp"
#include "plan/export.hpp"

namespace medley::cli {

struct PlanRequest {
  std::string model, as, layout, framework = "textbook", dtype, rank, against, schedule_file, json, machine;
  plan::Count micro_batch = 0, global_batch = 0, seq = 0, small = 65536;
  std::vector<std::string> sweeps;
  bool all_rows = false, force = false;
};

/// A plan of one rank with everything the command shows.
struct PlanOutcome {
  plan::Model model;
  plan::Layout layout;
  plan::Framework framework = plan::Framework::textbook;
  plan::Count rank = 0;
  plan::Schedule schedule;
  std::vector<plan::Row> rows;
  cost::Memory memory;                     ///< of the rank asked for, or of the one that holds most
  cost::FullestGpu fullest;                ///< the rank that decides whether it fits
  std::map<std::string, double> textbook;  ///< wire bytes per group that papers would print for the same rank
  // With a machine:
  std::optional<cost::Machine> machine;
  cost::StepCost time;
  bool fits() const;  ///< the GPU's memory
};

plan::Model model_of(const PlanRequest& request);
plan::Layout layout_of(const PlanRequest& request);
plan::Framework framework_of(const PlanRequest& request);
/// Plans `rank`, or the busiest one for −1; `layout` is checked first.
PlanOutcome make_plan(const plan::Model& model, plan::Layout layout, plan::Framework framework,
                      plan::Count rank, const std::optional<cost::Machine>& machine = std::nullopt);
std::optional<cost::Machine> machine_of(const PlanRequest& request);

// How the time of a step is shown (plan_time.cpp); nothing without a machine.
void add_time(nlohmann::ordered_json& json, const PlanOutcome& outcome);
void print_time(const PlanOutcome& outcome);
/// Why the layout does not fit the machine's GPUs.
std::string misfit_text(const PlanOutcome& outcome);

nlohmann::ordered_json plan_json(const PlanOutcome& outcome, plan::Count small);
void print_plan(const PlanOutcome& outcome, const PlanRequest& request);

int run_sweep(const PlanRequest& request);
int run_against(const PlanRequest& request);

/// 1.50 GiB, 24 B.
std::string size_text(double bytes);

}  // namespace medley::cli

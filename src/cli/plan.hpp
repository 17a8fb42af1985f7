// Shared by the files of `medley plan` and used by other commands.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cost/plan_step.hpp"
#include "cost/plan_sweep.hpp"
#include "plan/against.hpp"

namespace medley::cli {

using cost::PlanRequest;

/// The options that say what is trained and how: --model to --dtype.
void add_plan_options(CLI::App& command, PlanRequest& request);

/// --machine; `what` says what it is for.
void add_machine(CLI::App& command, PlanRequest& request, const std::string& what);
void add_tokens(CLI::App& command, PlanRequest& request);

/// The cells of a row's columns "days" and "GPU-hours".
void add_training(std::vector<std::string>& row, const cost::TrainingTime& training);

void print_plan(const cost::PlanResult& plan, bool all_rows);
void print_sweep(const cost::SweepResult& sweep);
void print_against(const plan::AgainstResult& result);

/// 1.50 GiB, 24 B.
std::string size_text(double bytes);

}  // namespace medley::cli

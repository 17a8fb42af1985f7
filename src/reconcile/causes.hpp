// Why a run differs from its plan. First the plan is made again with one switch changed at a time: the change
// that makes a difference vanish is its cause. What no switch explains is left to rules of thumb, one
// function each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reconcile/reconcile.hpp"

namespace medley::reconcile {

/// What was planned.
struct Plan {
  plan::Model model;
  plan::Layout layout;  ///< checked
  plan::Framework framework = plan::Framework::textbook;
};

/// A switch that frameworks have, and how it would read as a cause. `change` returns false where it does not
/// apply.
struct WhatIf {
  std::function<bool(plan::Layout&, plan::Framework&)> change;
  std::string cause;
};
std::vector<WhatIf> what_ifs(const Plan& plan);

/// A rule of thumb about one difference, given all of them; empty: it does not apply.
using Rule = std::string (*)(const Line& line, const Result& all);
const std::vector<Rule>& rules();

/// Fills in the causes. Without a plan (a schedule file) only the rules of thumb are asked.
void explain(Result& result, const std::optional<Plan>& plan, const Items& observed);

}  // namespace medley::reconcile

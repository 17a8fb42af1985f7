// Finds the hypothesis that explains differences. A hypothesis is accepted only if it predicts more rows than it has
// free parameters, and if every row that it changes matches the observation, on every rank and in every step.
#pragma once

#include "reconcile/reconcile.hpp"

namespace medley::reconcile {

/// One comparison: the planned and the observed step of a rank.
struct Case {
  int rank = 0;
  Sequence expected;
  bool ordered = true;  ///< whether the order of the two is compared
  const ObservedRank* observed = nullptr;
  const Variant* variant = nullptr;
  StepsResult* result = nullptr;
};

/// Fills in causes that are different settings of the plan.
void explain_by_settings(const Plan& plan, const Options& options, std::vector<Case>& cases, Report& report);

/// Judges the order of a step by its comparison with an accepted prediction: what was wrong before is explained by
/// `cause`, and what is wrong now is a difference, also where the operations had no counterpart before.
void judge_order(const Comparison& now, const std::string& cause, StepsResult& result);

/// Fills in causes that are unevenly routed tokens: all_to_alls whose bytes over all ranks add up to the planned ones,
/// and which the backward pass repeats. `row_bytes` is the size of one token.
void explain_by_routing(std::int64_t row_bytes, std::vector<Case>& cases, Report& report);

}  // namespace medley::reconcile

// Finds the hypothesis behind differences. A hypothesis is taken only if it predicts more rows than it has
// free parameters, and if every row that it changes matches what was observed, on every rank and in every
// step.
#pragma once

#include "reconcile/reconcile.hpp"

namespace medley::reconcile {

/// One comparison: the planned and the observed step of a rank.
struct Case {
  int rank = 0;
  Sequence expected;
  const ObservedRank* observed = nullptr;
  const Variant* variant = nullptr;
  StepsResult* result = nullptr;
};

/// Fills in the causes by other settings of the plan.
void explain_by_settings(const Plan& plan, const Options& options, std::vector<Case>& cases, Report& report);

/// Fills in the causes by tokens that were routed unevenly to experts: all_to_alls whose bytes over all ranks
/// add up to the planned ones, and which the backward pass repeats.
/// `row_bytes` is what one token has.
void explain_by_routing(std::int64_t row_bytes, std::vector<Case>& cases, Report& report);

}  // namespace medley::reconcile

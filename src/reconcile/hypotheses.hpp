// Hypotheses about a run: one setting differs from the plan. Each predicts every row of every rank, so it is
// falsifiable; explain() keeps one only where all rows that it changes then match.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "reconcile/expectation.hpp"

namespace medley::reconcile {

/// One setting with one value: a single free parameter.
struct Hypothesis {
  std::string sentence;
  std::string setting;               ///< two hypotheses about one setting exclude each other
  std::function<bool(Plan&)> apply;  ///< false where it changes nothing
};

/// The hypotheses worth trying. Bucket sizes are derived from the observed sizes.
std::vector<Hypothesis> hypotheses(const Plan& plan, const std::set<std::int64_t>& observed_sizes);

}  // namespace medley::reconcile

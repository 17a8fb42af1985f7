// The seven sizing rules of the co-design paper (arXiv 2401.14489), checked on a shape and held against what
// the GPU model predicts for obeying them. The rules were found on A100; on other GPUs some of them no longer
// bite.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shape/advice.hpp"

namespace medley::shape {

struct RuleCheck {
  int number = 0;
  std::string_view text{};  ///< the rule
  bool holds = true;
  std::string found{};  ///< the numbers it looks at
  std::optional<Advice>
      obeying{};          ///< the nearest change that obeys it, priced; none where it holds or none exists
  bool agrees = true;     ///< rule and prediction say the same
  std::string verdict{};  ///< one sentence
};

/// The text of rule `number`, 1 to 7.
std::string_view rule_text(int number) noexcept;

std::vector<RuleCheck> check_rules(Pricer& pricer, const Model& model, const Workload& work);

/// A gain as a user should read it: a percentage where the GPU is calibrated, words where it is not.
std::string gain_text(double gain, bool calibrated);

}  // namespace medley::shape

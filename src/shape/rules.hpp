// The seven sizing rules of the co-design paper (arXiv 2401.14489), checked on a shape and compared with the
// GPU model's prediction for following them. The rules were found on A100; on other GPUs some no longer
// matter.
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
  std::string found{};              ///< the numbers it checks
  std::optional<Advice> obeying{};  ///< the nearest change that follows it, priced; none if it holds or there is none
  bool agrees = true;               ///< rule and prediction agree
  std::string verdict{};            ///< one sentence
};

/// The text of rule `number`, 1 to 7.
std::string_view rule_text(int number) noexcept;

std::vector<RuleCheck> check_rules(Pricer& pricer, const Model& model, const Workload& work);

/// A gain as text: a percentage if the GPU is calibrated, words if not.
std::string gain_text(double gain, bool calibrated);

}  // namespace medley::shape

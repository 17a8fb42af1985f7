// The numbers of a configuration that waste time on a GPU, each with its key in the file. Used by `medley
// shape lint`, in CI.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shape/advice.hpp"

namespace medley::shape {

struct Finding {
  Knob knob = Knob::vocabulary;
  std::string key;  ///< in the file's spelling
  Count value = 0;
  Count better = 0;  ///< 0 if the shape is impossible as given
  double waste = 0;  ///< share of the step that the better value saves, at equal parameters
  std::string why{};
};

struct LintFindings {
  std::vector<Finding> findings;
  /// Share of the step that the better values save at once. Less than the sum: each finding's waste is of the whole step,
  /// and two may be cures of the same loss.
  double together = 0;
};

/// Every number that wastes more than `allow` of the step, worst first, but before them the numbers that tp
/// cannot divide. `text` is the configuration's own text; if empty, keys are those of Hugging Face. `work`
/// need not have passed check().
LintFindings lint(Pricer& pricer, const Model& model, Workload work, double allow, std::string_view text);

/// The spelling of `knob` in a configuration's text (Hugging Face, GPT-NeoX, Megatron arguments), or the
/// usual one.
std::string key_of(Knob knob, std::string_view text);

}  // namespace medley::shape

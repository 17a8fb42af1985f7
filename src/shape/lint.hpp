// Which numbers of a configuration waste time on a GPU, each with the key it has in its file.
// Used by `medley shape lint`, in CI.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shape/advice.hpp"

namespace medley::shape {

struct Finding {
  Knob knob = Knob::vocabulary;
  std::string key;  ///< as the file spells it
  Count value = 0;
  Count better = 0;  ///< 0 where the shape is impossible as it stands
  double waste = 0;  ///< share of the step that the better value saves, at equal parameters
  std::string why{};
};

/// Every number that wastes more than `allow` of the step, worst first; first of all those that tp cannot
/// split. `text` is the configuration's own text, or empty: keys are then the ones of Hugging Face. `work`
/// need not have passed check().
std::vector<Finding> lint(Pricer& pricer, const Model& model, Workload work, double allow,
                          std::string_view text);

/// The spelling of `knob` in a configuration's text (Hugging Face, GPT-NeoX, Megatron arguments), or the
/// usual one.
std::string key_of(Knob knob, std::string_view text);

}  // namespace medley::shape

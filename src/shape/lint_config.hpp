// A configuration file checked for numbers that waste a GPU's time. Used by `medley shape lint`, in CI, and
// by the Python package; lint.hpp finds them.
#pragma once

#include <nlohmann/json.hpp>

#include "shape/lint.hpp"
#include "shape/request.hpp"

namespace medley::shape {

/// `model` is the file, or a name of the zoo. A seq of 0 stands for the model's, at most 4096 tokens. The host's
/// launches are left out: a number that wastes the GPU's time is found at any micro-batch.
struct LintRequest : ShapeRequest {
  double allow = 0.05;  ///< share of the step that one number may waste
};

struct LintResult {
  std::string file;
  GpuModel gpu;
  double allow = 0;
  Layout layout;  ///< of the step that was looked at
  std::vector<Finding> findings;
  double together = 0;  ///< share of the step that all better values save at once
};

LintResult lint_config(const LintRequest& request);
nlohmann::ordered_json to_json(const LintResult& result);
/// One sentence: key, value, what it wastes, the better value.
std::string sentence(const LintResult& result, const Finding& finding);
/// What several findings save at once; empty for fewer.
std::string joint_sentence(const LintResult& result);

}  // namespace medley::shape

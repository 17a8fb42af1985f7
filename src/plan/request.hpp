// Which training step a user asks about, in the words of the command line: everything that plans, compares or
// reconciles a step starts from it. Used by `medley plan`, `medley reconcile` and the Python package.
#pragma once

#include <string>

#include "plan/framework.hpp"

namespace medley::plan {

struct StepRequest {
  std::string model;   ///< as read_model() takes it
  std::string as;      ///< the family to read a config.json by; empty: its own
  std::string layout;  ///< as read_layout() takes it
  std::string framework = "textbook";
  // These override the layout's; 0 and empty: the layout's own.
  Count micro_batch = 0, global_batch = 0, seq = 0;
  std::string dtype;
};

/// Each throws Error(invalid) that names the option and the value.
Model model_of(const StepRequest& request);
/// Not yet checked against the model.
Layout layout_of(const StepRequest& request);
Framework framework_of(const StepRequest& request);

}  // namespace medley::plan

// Which step the advisor looks at, in the words of the command line: model, GPU, layout. Used by `medley
// shape`, its subcommands and the Python package.
#pragma once

#include <string>

#include "shape/operators.hpp"

namespace medley::shape {

struct ShapeRequest {
  std::string model;  ///< as read_model() takes it
  std::string as;     ///< the family to read a config.json by; empty: its own
  std::string gpu;    ///< name, such as "h200-sxm"
  int tp = 1, pp = 1, dp = 1, zero = 0;
  Count micro_batch = 1;
  Count global_batch = 0;  ///< 0: one micro-batch, four per stage with a pipeline
  Count seq = 0;           ///< 0: the model's; the cached tokens in decode
  bool sp = false, compiled = false;
  std::string mode = "train", attention = "best", dtype = "bf16", recompute = "none", framework = "textbook";
};

// Each throws Error(invalid) that names the option and the value.

/// A model by name, from a file, or inline, as `medley plan` reads it.
Model shape_model(const std::string& name_or_file, const std::string& as = {});
/// The layout and mode asked for, not yet checked against a model.
Workload unchecked_workload(const ShapeRequest& request);
/// The same, checked against `model` with its defaults filled in.
Workload workload_of(const ShapeRequest& request, const Model& model);

}  // namespace medley::shape

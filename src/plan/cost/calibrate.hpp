// Fits the cost model's constants to measured step times and says how well it predicts the ones it did not
// see. Used by `medley plan calibrate` and by the test that guards the published error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/cost/cost.hpp"

namespace medley::plan {

/// One measured step.
struct MeasuredStep {
  Model model;
  Layout layout;
  double us = 0;
};

/// Rows of a CSV file with the columns of vTrain's table: # GPUs, global batch, micro batch, hidden size,
/// attention heads, # layers, sequence length, tensor, data and pipeline parallelism, iteration time (ms).
/// GPT shape, `vocab` entries, fp16, unfused attention. Throws Error(invalid) naming line and column.
std::vector<MeasuredStep> read_measured(std::string_view csv, const std::string& source, Count vocab);

/// Every second row, after sorting by shape and layout, is held out of the fit: rows that differ in little
/// fall on both sides, and the order of the file plays no part.
struct Halves {
  std::vector<MeasuredStep> fit, held_out;
};
Halves split(std::vector<MeasuredStep> steps);

struct PredictionError {
  double mape = 0;  ///< mean of |predicted/measured − 1|
  double worst = 0;
  double bias = 0;  ///< mean of predicted/measured − 1
};
PredictionError prediction_error(const std::vector<MeasuredStep>& steps, Framework framework,
                                 const Machine& machine);

/// The constants marked fitted, less those named in `keep`, moved from those of `machine` until the mean
/// |log(predicted/measured)| no longer falls (pattern search in the logarithm of each). The others stay.
CostConstants fit_constants(const std::vector<MeasuredStep>& steps, Framework framework,
                            const Machine& machine, const std::vector<std::string>& keep = {});

}  // namespace medley::plan

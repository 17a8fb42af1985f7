// Fits the cost model's constants to measured step times and reports the error on the steps it was not fitted
// to. Used by `medley plan calibrate` and by the test of the published error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/cost.hpp"

namespace medley::cost {

/// One measured step.
struct MeasuredStep {
  Model model;
  Layout layout;
  Framework framework = Framework::megatron;
  double us = 0;
  std::string gpu{};  ///< its name in gpus.csv, if the file gives it
};

/// The microseconds of a step in a recorded run; throws Error(invalid) that names the file. The caller's,
/// because this module knows no traces.
using TraceTime = std::function<double(const std::string& path)>;

/// Rows of a CSV file with the columns of vTrain's table: # GPUs, global batch, micro batch, hidden size,
/// attention heads, # layers, sequence length, tensor, data and pipeline parallelism, iteration time (ms).
/// GPT shape, `vocab` entries, fp16, unfused attention. Bad rows are added to `skipped`, a sentence with line
/// and column each; without it, Error(invalid) names them all.
std::vector<MeasuredStep> read_vtrain(std::string_view csv, const std::string& source, Count vocab,
                                      std::vector<std::string>* skipped = nullptr);

/// Rows of a CSV file in the columns of bench/steps: model, gpu, gpus, framework, precision, seq,
/// micro_batch, global_batch, dp, tp, pp, cp, vp, ep, zero, recompute, tokens_per_s_per_gpu (or step_ms, or
/// trace: a recorded run beside the file), h, a, kv, layers, ffn, vocab, gated, tied and optionally layout
/// with further keys. A row without h names a model of the zoo. Bad rows as in read_vtrain().
std::vector<MeasuredStep> read_steps(std::string_view csv, const std::string& source,
                                     std::vector<std::string>* skipped = nullptr, const TraceTime& trace_time = {});

/// Either of the two, by the header.
std::vector<MeasuredStep> read_measured(std::string_view csv, const std::string& source, Count vocab,
                                        std::vector<std::string>* skipped = nullptr, const TraceTime& trace_time = {});

/// The fit holds out every second model and scale (shape and number of GPUs) as a whole: rows that differ
/// only in layout or batch are never on both sides.
struct Halves {
  std::vector<MeasuredStep> fit, held_out;
};
Halves split(std::vector<MeasuredStep> steps);

struct PredictionError {
  double mape = 0;  ///< mean of |predicted/measured − 1|
  double worst = 0;
  double bias = 0;  ///< mean of predicted/measured − 1
};
PredictionError prediction_error(const std::vector<MeasuredStep>& steps, const Machine& machine);

/// Moves the constants marked fitted, except those in `keep`, from their values in `machine` until the mean
/// |log(predicted/measured)| no longer falls (pattern search in the logarithm of each). The others are
/// unchanged.
CostConstants fit_constants(const std::vector<MeasuredStep>& steps, const Machine& machine,
                            const std::vector<std::string>& keep = {});

}  // namespace medley::cost

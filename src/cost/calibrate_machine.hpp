// Fits a machine's constants to files of measured steps. Used by `medley plan calibrate`; calibrate.hpp has
// the parts.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "cost/calibrate.hpp"

namespace medley::cost {

struct CalibrateRequest {
  std::vector<std::string> data;     ///< CSV files that read_measured() takes
  std::string framework;             ///< that ran the steps; empty: as the files say
  std::string machine = "dgx-a100";  ///< they ran on
  Count vocab = 50257;               ///< of models whose file does not say
  std::vector<std::string> keep;     ///< constants that are not fitted
  bool all = false;                  ///< fit on all rows, not on half of them
  bool check_only = false;           ///< fit nothing
  TraceTime trace_time;              ///< for rows that name a recorded run
  bool skip_bad_rows = false;        ///< use the rest of a file with bad rows; else they are an error
};

struct CalibrateResult {
  std::vector<std::string> data;
  std::string framework;  ///< as asked for
  CostConstants before;
  Machine machine;  ///< with the fitted constants
  std::size_t fit_steps = 0, held_out_steps = 0;
  std::vector<std::string> skipped{};  ///< a sentence on each bad row
  PredictionError fit, held_out;
};

/// Throws Error(invalid) naming the file, the framework or the machine that is wrong.
CalibrateResult calibrate_machine(const CalibrateRequest& request);
nlohmann::ordered_json to_json(const CalibrateResult& result);
/// The calibrated machine as the TOML file that find_machine() reads.
std::string machine_toml(const CalibrateResult& result);

}  // namespace medley::cost

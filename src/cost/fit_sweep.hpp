// A measured sweep of matrix products turned into a calibration, with the error on the half that the fit has
// not seen. Used by `medley shape fit`; fit.hpp and calibration.hpp have the parts.
#pragma once

#include <nlohmann/json.hpp>

#include "cost/calibration.hpp"

namespace medley::cost {

struct FitRequest {
  std::string sweep;               ///< CSV of `medley shape bench`
  std::string gpu = "h200-sxm";    ///< it was measured on
  std::string attention, streams;  ///< CSV files of other kernels, for the calibration; may be empty
  std::string source;              ///< of a published table
  std::string like;                ///< a shipped GPU whose sweep gives what the table lacks
  double attention_scale = 1;      ///< with `like`: attention's times against that GPU's
  bool calibrate = false;          ///< also fit all rows, for a calibration file
};

/// How well one group of products that were held out is predicted, with the plain roofline beside it.
struct FitRow {
  std::string group;
  Accuracy fitted, roofline;
};

struct FitResult {
  std::string gpu;
  std::vector<FitRow> rows;
  nlohmann::ordered_json calibration;  ///< for write_calibration(); null unless asked for
};

FitResult fit_sweep(const FitRequest& request);
/// The accuracy alone.
nlohmann::ordered_json to_json(const FitResult& result);

}  // namespace medley::cost

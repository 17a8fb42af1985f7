// The predicted time of each matrix product of a CSV file. Used by `medley shape gemm`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cost/gpu_model.hpp"

namespace medley::cost {

struct GemmTimesRequest {
  std::string gpu;            ///< name, such as "h200-sxm"
  std::string file;           ///< as read_gemm_csv() takes it
  std::string calibration;    ///< path of a calibration to use instead of the shipped one
  bool column_major = false;  ///< m and n are those of the cuBLAS call; default: of row-major C(m×n)
  bool sustained = false;     ///< back to back under the power limit; default: a burst
};

struct GemmRow {
  Gemm gemm;  ///< as given
  GemmTime time;
};

struct GemmTimesResult {
  std::string gpu;
  bool sustained = false, calibrated = false;
  std::string provenance;  ///< of the GPU's model
  std::vector<GemmRow> rows;
};

GemmTimesResult gemm_times(const GemmTimesRequest& request);
nlohmann::ordered_json to_json(const GemmTimesResult& result);
/// Microseconds by cause.
nlohmann::ordered_json to_json(const GemmLosses& lost);

}  // namespace medley::cost

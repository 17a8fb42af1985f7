// A calibration file: everything measured of one GPU, fitted, with what it was measured on.
// Written by `medley shape bench` and `medley shape fit`, read by GpuModel.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "cost/fit.hpp"

namespace medley::cost {

struct CalibrationInputs {
  std::string date, device, driver, cuda, cublas;  ///< where the sweep comes from
  std::string attention_csv, stream_csv;           ///< optional measurements beside the products
  std::string source{};                            ///< of tables that others published
  std::string like{};                              ///< the GPU whose sweep stands in for what the table lacks
  double attention_scale = 1;                      ///< with `like`: attention's times against that GPU's
  double held_out_error = 0;                       ///< found with half of the products; 0: not known
};

/// Reads date and versions from the '#' lines that `medley shape bench` puts ahead of a sweep.
CalibrationInputs describe_sweep(const std::string& path);
nlohmann::ordered_json calibrate(const Gpu& gpu, std::span<const MeasuredGemm> samples,
                                 const CalibrationInputs& inputs);
/// Writes `calibration` with one tree a line, so that versions of it can be compared.
void write_calibration(const std::string& path, const nlohmann::ordered_json& calibration);
/// A model with the calibration in a file; throws medley::Error (invalid) when it cannot be read.
GpuModel calibrated_model(const Gpu& gpu, const std::string& path);

}  // namespace medley::cost

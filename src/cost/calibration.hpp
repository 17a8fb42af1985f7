// A calibration file: all measurements of one GPU, fitted, and what they were measured on. Written by `medley
// shape bench` and `medley shape fit`, read by GpuModel.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "cost/fit.hpp"

namespace medley::cost {

struct CalibrationInputs {
  std::string date, device, driver, cuda, cublas;  ///< where the sweep was measured
  std::string attention_csv, stream_csv;           ///< optional measurements besides the products
  std::string source{};                            ///< of published tables
  std::string like{};                              ///< the GPU whose sweep fills in what the table lacks
  double attention_scale = 1;                      ///< with `like`: attention time relative to that GPU's
  double held_out_error = 0;                       ///< error on the held-out half of the products; 0: not known
};

/// Reads date and versions from the '#' lines at the head of a sweep by `medley shape bench`.
CalibrationInputs describe_sweep(const std::string& path);
nlohmann::ordered_json calibrate(const Gpu& gpu, std::span<const MeasuredGemm> samples,
                                 const CalibrationInputs& inputs);
/// Writes `calibration` with one tree per line, so that versions can be compared.
void write_calibration(const std::string& path, const nlohmann::ordered_json& calibration);
/// A model with the calibration in a file; throws medley::Error (invalid) when it cannot be read.
GpuModel calibrated_model(const Gpu& gpu, const std::string& path);

}  // namespace medley::cost

// Fits a GPU model to a measured sweep and reports how well a model predicts one. Used by `medley shape
// bench` and by the test of the shipped calibration.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cost/gpu_model.hpp"

namespace medley::cost {

struct MeasuredGemm {
  Gemm gemm;
  double us = 0;
};

/// A sweep's CSV: the columns of gemm_csv.hpp and `us`.
std::vector<MeasuredGemm> read_sweep(const std::string& path);

/// Half of all products, chosen only by sizes, layout and type: the same half in every sweep.
bool held_out(const Gemm& gemm) noexcept;

/// The `gemm` part of a calibration file.
nlohmann::json fit_gemms(const Gpu& gpu, std::span<const MeasuredGemm> samples);

struct Accuracy {
  std::size_t count = 0;
  double mape = 0, p95 = 0, worst = 0;  ///< of |predicted/measured − 1|
};
Accuracy accuracy(std::span<const double> predicted, std::span<const MeasuredGemm> samples);
Accuracy accuracy(const GpuModel& model, std::span<const MeasuredGemm> samples);

}  // namespace medley::cost

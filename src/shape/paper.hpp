// The figures of the co-design paper (arXiv 2401.14489) beside what the GPU models say of the same products:
// on the paper's own GPU (from its datasheet) and on the one asked for. Used by `medley shape paper`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shape/step.hpp"

namespace medley::shape {

struct PaperRow {
  std::string figure;  ///< what of the paper it is
  std::string what;    ///< the shape
  std::string unit;    ///< "TFLOP/s", "%", "tiles", …
  std::optional<double> published{};
  std::string paper_gpu{};        ///< where that was measured
  std::optional<double> there{};  ///< predicted for that GPU
  std::optional<double> here{};   ///< predicted for the GPU asked for
};

/// Every figure that can be redone from shapes alone, in the paper's order.
std::vector<PaperRow> paper_rows(const GpuModel& gpu);

}  // namespace medley::shape

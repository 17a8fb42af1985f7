// The figures of the co-design paper (arXiv 2401.14489) next to the GPU models' predictions for the same
// products: on the paper's own GPU (from its datasheet) and on the requested one. Used by `medley shape
// paper`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "shape/step.hpp"

namespace medley::shape {

struct PaperRow {
  std::string figure;  ///< the figure or table of the paper
  std::string what;    ///< the shape
  std::string unit;    ///< "TFLOP/s", "%", "tiles", …
  std::optional<double> published{};
  std::string paper_gpu{};        ///< the GPU of that measurement
  std::optional<double> there{};  ///< predicted for that GPU
  std::optional<double> here{};   ///< predicted for the requested GPU
  std::string note{};             ///< why published and predicted differ, where they do
};

/// Every figure that can be recomputed from shapes alone, in the paper's order.
std::vector<PaperRow> paper_rows(const GpuModel& gpu);

struct PaperRequest {
  std::string gpu = "h200-sxm";
};
struct PaperResult {
  GpuModel gpu;
  std::vector<PaperRow> rows;
};
PaperResult redo_paper(const PaperRequest& request);
nlohmann::ordered_json to_json(const PaperResult& result);

}  // namespace medley::shape

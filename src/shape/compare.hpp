// One model across GPUs, or several models on one. Used by `medley shape compare` and the Python package.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "shape/request.hpp"
#include "shape/step.hpp"

namespace medley::shape {

struct CompareRequest : ShapeRequest {    ///< its own model and gpu are not used
  std::vector<std::string> models, gpus;  ///< an entry of `models` may list several: a,b
};

struct ComparedShape {
  std::string model, gpu;
  bool calibrated = false;
  Count parameters = 0;
  std::string refused{};  ///< why the layout is impossible; the rest is then empty
  std::optional<Step> step{};
  double against_first = 0;    ///< tokens per second, against the first possible row
  std::string_view lost_to{};  ///< the cause that matrix products lose most time to
  bool fits = false;
  Count largest_micro_batch = 0;  ///< that fits; 0: none
};

struct CompareResult {
  std::vector<ComparedShape> rows;  ///< every model on every GPU
};

/// Throws Error(invalid) where nothing is given or no row is possible.
CompareResult compare_shapes(const CompareRequest& request);
nlohmann::ordered_json to_json(const CompareResult& result);

}  // namespace medley::shape

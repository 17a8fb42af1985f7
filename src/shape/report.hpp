// Everything the advisor says of one model on one GPU: its operators, the layer, the step, the rules and the
// advice. What `medley shape` prints and Python binds.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "shape/advice.hpp"
#include "shape/losses.hpp"
#include "shape/request.hpp"
#include "shape/rules.hpp"

namespace medley::shape {

struct ReportedAdvice : Advice {
  double parameters_change = 0;  ///< of all parameters, padding of the vocabulary included
};

struct ShapeReport {
  Model model;
  Count parameters = 0;
  Workload work;
  GpuModel gpu;
  std::vector<PricedOperator> operators;
  double products_us = 0;                                 ///< of one micro-batch, all matrix products
  std::vector<std::pair<std::string_view, double>> lost;  ///< microseconds of those, by cause
  Step step;
  std::vector<RuleCheck> rules;
  std::vector<ReportedAdvice> advice;
  CombinedAdvice combined;
  double memory = 0, usable_memory = 0;  ///< bytes
  Count largest_micro_batch = 0;         ///< that fits; 0: none
};

ShapeReport report_shape(const ShapeRequest& request);
nlohmann::ordered_json to_json(const ShapeReport& report);

}  // namespace medley::shape

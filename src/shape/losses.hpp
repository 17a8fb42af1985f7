// Where the time of a step goes and what causes the losses, operator by operator. Used by `medley shape` for
// its table and by the advisor to say why a change pays.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shape/operators.hpp"

namespace medley::shape {

struct PricedOperator {
  Operator op;
  Block block;
  Count times = 1;                    ///< blocks in the model that run it: layers, or 1
  double us = 0;                      ///< all calls in one block and micro-batch
  GemmTime gemm{};                    ///< products only: one call
  double tflops = 0, efficiency = 0;  ///< of products and attention
  double call_us() const noexcept { return us / double(op.count); }
  bool is_gemm() const noexcept { return std::holds_alternative<Gemm>(op.work); }
};

/// Every operator of one micro-batch through the whole model, priced with its losses.
std::vector<PricedOperator> price_operators(const GpuModel& gpu, const Model& model, const Workload& work);

/// Microseconds of one micro-batch lost to each cause, over the whole model.
GemmLosses total_losses(const std::vector<PricedOperator>& operators);

/// The causes by name, in the order of GemmLosses.
std::vector<std::pair<std::string_view, double>> by_cause(const GemmLosses& losses);

/// One clause about the operator that gains most from `before` to `after`, and which of its losses shrank.
std::string largest_saving(const std::vector<PricedOperator>& before, const std::vector<PricedOperator>& after);

}  // namespace medley::shape

#include "cost/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <medley/error.hpp>
#include <numeric>

namespace medley::cost {
namespace {

/// Steps with their schedules, which are made once; only the machine's constants change during a fit.
struct Prepared {
  std::vector<Step> steps;
  std::vector<double> measured_us;

  explicit Prepared(const std::vector<MeasuredStep>& rows) {
    for (const MeasuredStep& row : rows) {
      steps.emplace_back(row.model, row.layout, row.framework, 0);
      measured_us.push_back(row.us);
    }
  }
  /// predicted/measured of every step.
  std::vector<double> ratios(const Machine& machine, KernelTime& kernels) const {
    std::vector<double> out;
    for (std::size_t i = 0; i < steps.size(); ++i)
      out.push_back(steps[i].cost(machine, kernels).step_us / measured_us[i]);
    return out;
  }
};

double mean_log_error(const Prepared& prepared, const Machine& machine, KernelTime& kernels) {
  double sum = 0;
  for (const double ratio : prepared.ratios(machine, kernels)) sum += std::abs(std::log(ratio));
  return sum / static_cast<double>(prepared.steps.size());
}

}  // namespace

Halves split(std::vector<MeasuredStep> steps) {
  const auto scale = [](const MeasuredStep& s) {
    return std::tuple(s.model.hidden, s.model.layers, s.model.heads, s.model.vocab, s.layout.world());
  };
  std::ranges::stable_sort(steps, {}, scale);
  Halves halves;
  bool fit = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i == 0 || scale(steps[i]) != scale(steps[i - 1])) fit = !fit;
    (fit ? halves.fit : halves.held_out).push_back(steps[i]);
  }
  return halves;
}

PredictionError prediction_error(const std::vector<MeasuredStep>& steps, const Machine& machine) {
  PredictionError error;
  KernelTime kernels(gpu_model(machine), machine.constants.flash1_share);
  for (const double ratio : Prepared(steps).ratios(machine, kernels)) {
    error.mape += std::abs(ratio - 1);
    error.bias += ratio - 1;
    error.worst = std::max(error.worst, std::abs(ratio - 1));
  }
  error.mape /= std::max(1.0, static_cast<double>(steps.size()));
  error.bias /= std::max(1.0, static_cast<double>(steps.size()));
  return error;
}

CostConstants fit_constants(const std::vector<MeasuredStep>& steps, const Machine& start,
                            const std::vector<std::string>& keep) {
  std::vector<ConstantRow> moving;
  for (const ConstantRow& row : constant_rows) {
    if (row.fitted && std::ranges::find(keep, row.name) == keep.end()) moving.push_back(row);
  }
  const Prepared prepared(steps);
  Machine machine = start;
  KernelTime kernels(gpu_model(machine), machine.constants.flash1_share);
  double best = mean_log_error(prepared, machine, kernels);
  for (double stride = 0.3; stride > 0.01; stride /= 2) {
    for (bool better = true; better;) {
      better = false;
      for (const ConstantRow& row : moving) {
        double& value = machine.constants.*row.member;
        for (const double factor : {std::exp(stride), std::exp(-stride)}) {
          const double before = value;
          // a share stays at most 1
          value = row.name.find("share") != row.name.npos ? std::min(1.0, before * factor) : before * factor;
          const double error = mean_log_error(prepared, machine, kernels);
          if (error < best - 1e-6) {
            best = error;
            better = true;
            break;
          }
          value = before;
        }
      }
    }
  }
  return machine.constants;
}

}  // namespace medley::cost

// How long one training step takes on a machine: simulates the schedules of all pipeline stages together. One
// mechanism for every framework; used by `medley plan --machine`, its sweeps and the calibration.
#pragma once

#include "cost/entry_time.hpp"
#include "cost/words.hpp"
#include "plan/framework.hpp"

namespace medley::cost {

struct StepCost {
  double step_us = 0;
  Spent spent{};  ///< of the requested rank; sums to step_us
  double tokens_per_s_per_gpu = 0;
  double tflops_per_gpu = 0;           ///< model FLOPs (flops.hpp)
  double hardware_tflops_per_gpu = 0;  ///< including recomputation
};

/// The model of the machine's GPU: calibrated if a calibration ships.
GpuModel gpu_model(const Machine& machine);

/// One step of one rank's pipeline, which can be timed on any machine: the schedules do not depend on the
/// machine.
class Step {
 public:
  /// `layout` must have passed check(layout, model); `rank` is the rank whose breakdown is returned.
  Step(const Model& model, const Layout& layout, Framework framework, Count rank);

  StepCost cost(const Machine& machine) const;
  /// The same with kernel times cached between steps; `kernels` must be of the machine's GPU.
  StepCost cost(const Machine& machine, KernelTime& kernels) const;
  /// Time of each entry of the rank's own schedule; kernels include the gap after them.
  std::vector<double> entry_us(const Machine& machine) const;
  /// The rank's own schedule.
  const Schedule& schedule() const& { return stages_[own_]; }
  Schedule schedule() && { return std::move(stages_[own_]); }

 private:
  Layout layout_;
  Framework framework_;
  std::vector<Schedule> stages_;  ///< one rank per stage, at the same coordinates
  std::vector<Count> ranks_;
  std::size_t own_ = 0;
  double model_flops_ = 0, hardware_flops_ = 0;
};

}  // namespace medley::cost

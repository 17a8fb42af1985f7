// How long one training step takes on a machine: the schedules of all pipeline stages walked side by side.
// One mechanism for every framework; used by `medley plan --machine`, its sweeps and the fit of the
// constants.
#pragma once

#include "plan/cost/entry_time.hpp"
#include "plan/framework.hpp"

namespace medley::plan {

struct StepCost {
  double step_us = 0;
  Spent spent{};  ///< of the rank asked for; sums to step_us
  double tokens_per_s_per_gpu = 0;
  double tflops_per_gpu = 0;  ///< model FLOPs (flops.hpp)
  double hardware_tflops_per_gpu = 0;
};

/// `layout` must have passed check(layout, model). The breakdown is that of `rank`.
StepCost step_cost(const Model& model, const Layout& layout, Framework framework, Count rank,
                   const Machine& machine, const CostConstants& constants = {});

}  // namespace medley::plan

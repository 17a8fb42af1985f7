#include "cost/cost.hpp"

#include <algorithm>

#include "cost/flops.hpp"
#include "cost/run_pipeline.hpp"

namespace medley::cost {

/// A measured sweep covers the whole GPU; a machine may give each rank half of one.
GpuModel gpu_model(const Machine& machine) {
  return machine.gpu_share < 1 ? GpuModel(machine.gpu) : GpuModel::named(machine.gpu.name);
}

// Only the other pipeline stages are simulated: the rank's peers in the tensor, context and data groups do
// the same as the rank.
Step::Step(const Model& model, const Layout& layout, Framework framework, Count rank)
    : layout_(as_run_by(model, layout, framework)),
      framework_(framework),
      model_flops_(model_flops(model, layout)),
      hardware_flops_(hardware_flops(model, layout)) {
  Coordinates place = coordinates(layout, rank);
  own_ = static_cast<std::size_t>(place.pp);
  for (place.pp = 0; place.pp < layout.pp; ++place.pp) {
    ranks_.push_back(rank_of(layout, place));
    stages_.push_back(make_schedule(model, layout, framework, ranks_.back()));
  }
}

std::vector<double> Step::entry_us(const Machine& machine) const {
  KernelTime kernels(gpu_model(machine), machine.constants.flash1_share);
  std::vector<double> us;
  for (const EntryCost& cost : entry_costs(stages_[own_], layout_, framework_, ranks_[own_], machine, kernels))
    us.push_back(cost.us);
  return us;
}

StepCost Step::cost(const Machine& machine) const {
  KernelTime kernels(gpu_model(machine), machine.constants.flash1_share);
  return cost(machine, kernels);
}

StepCost Step::cost(const Machine& machine, KernelTime& kernels) const {
  const Overlap overlap{machine.constants.overlap_slowdown};
  // Megatron and nanotron read losses and norms every step, and pipelines wait for their messages: there the
  // host starts each step, or pass, together with the GPU.
  const bool eager =
      framework_ != Framework::megatron && framework_ != Framework::neox && framework_ != Framework::nanotron;
  const bool host_ahead = eager && layout_.pp == 1;
  std::vector<StageProgram> programs;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const auto costs = entry_costs(stages_[i], layout_, framework_, ranks_[i], machine, kernels);
    programs.push_back(fold_stage(stages_[i], layout_, costs, ranks_[i], overlap));
    programs.back().host_ahead = host_ahead;
  }
  const std::vector<StageTime> times = run_pipeline(programs);

  StepCost cost;
  const double once = layout_.mode == Mode::train ? machine.constants.step_us : 0;
  double end = std::ranges::max_element(times, {}, &StageTime::end_us)->end_us;
  cost.spent = times[own_].spent;
  at(cost.spent, Cause::bubble) += end - times[own_].end_us;
  // While the GPU has work the host prepares the next step: the host's time counts only if it is the longer
  // one.
  const double host = times[own_].host_us + (eager && layout_.mode == Mode::train ? machine.constants.host_step_us : 0);
  if (!layout_.flags.cuda_graphs && host_ahead && host > end) {
    at(cost.spent, Cause::launch) += host - end;
    end = host;
  }
  at(cost.spent, Cause::other) += once;
  cost.step_us = end + once;

  const double gpu_seconds = cost.step_us * 1e-6 * static_cast<double>(layout_.world());
  const Count tokens = layout_.mode == Mode::decode ? 1 : layout_.seq;
  cost.tokens_per_s_per_gpu = static_cast<double>(layout_.global_batch) * static_cast<double>(tokens) / gpu_seconds;
  cost.tflops_per_gpu = model_flops_ / gpu_seconds * 1e-12;
  cost.hardware_tflops_per_gpu = hardware_flops_ / gpu_seconds * 1e-12;
  return cost;
}

}  // namespace medley::cost

#include "plan/cost/cost.hpp"

#include <algorithm>

#include "plan/cost/flops.hpp"
#include "plan/cost/pipeline.hpp"

namespace medley::plan {

// Only the pipeline's other stages are simulated: the rank's peers in the tensor, context and data groups do
// the same as it does.
Step::Step(const Model& model, const Layout& layout, Framework framework, Count rank)
    : layout_(layout),
      model_flops_(model_flops(model, layout)),
      hardware_flops_(hardware_flops(model, layout)) {
  Coordinates place = coordinates(layout, rank);
  own_ = static_cast<std::size_t>(place.pp);
  for (place.pp = 0; place.pp < layout.pp; ++place.pp) {
    ranks_.push_back(rank_of(layout, place));
    stages_.push_back(make_schedule(model, layout, framework, ranks_.back()));
  }
}

StepCost Step::cost(const Machine& machine) const {
  std::vector<StageProgram> programs;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    programs.push_back(fold_stage(stages_[i], layout_, entry_costs(stages_[i], layout_, ranks_[i], machine)));
  }
  const std::vector<StageTime> times = run_pipeline(programs);

  StepCost cost;
  const double once = machine.constants.step_us;
  const double end = std::ranges::max_element(times, {}, &StageTime::end_us)->end_us;
  cost.spent = times[own_].spent;
  at(cost.spent, Cause::bubble) += end - times[own_].end_us;
  at(cost.spent, Cause::other) += once;
  cost.step_us = end + once;

  const double gpu_seconds = cost.step_us * 1e-6 * static_cast<double>(layout_.world());
  cost.tokens_per_s_per_gpu =
      static_cast<double>(layout_.global_batch) * static_cast<double>(layout_.seq) / gpu_seconds;
  cost.tflops_per_gpu = model_flops_ / gpu_seconds * 1e-12;
  cost.hardware_tflops_per_gpu = hardware_flops_ / gpu_seconds * 1e-12;
  return cost;
}

}  // namespace medley::plan

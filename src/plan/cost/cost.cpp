#include "plan/cost/cost.hpp"

#include <algorithm>

#include "plan/cost/flops.hpp"
#include "plan/cost/pipeline.hpp"

namespace medley::plan {

StepCost step_cost(const Model& model, const Layout& layout, Framework framework, Count rank,
                   const Machine& machine, const CostConstants& constants) {
  // The other stages of the rank's own pipeline; what its peers in the tensor, context and data groups do is
  // the same.
  Coordinates place = coordinates(layout, rank);
  const auto own_stage = static_cast<std::size_t>(place.pp);
  std::vector<StageProgram> stages;
  for (int stage = 0; stage < layout.pp; ++stage) {
    place.pp = stage;
    const Count at_rank = rank_of(layout, place);
    const Schedule schedule = make_schedule(model, layout, framework, at_rank);
    stages.push_back(
        fold_stage(schedule, layout, entry_costs(schedule, layout, at_rank, machine, constants)));
  }
  const std::vector<StageTime> times = run_pipeline(stages);

  StepCost cost;
  const StageTime& own = times[own_stage];
  cost.spent = own.spent;
  const double end = std::ranges::max_element(times, {}, &StageTime::end_us)->end_us;
  at(cost.spent, Cause::bubble) += end - own.end_us;
  at(cost.spent, Cause::other) += constants.step_us;
  cost.step_us = end + constants.step_us;

  const double seconds = cost.step_us * 1e-6, gpus = static_cast<double>(layout.world());
  cost.tokens_per_s_per_gpu =
      static_cast<double>(layout.global_batch) * static_cast<double>(layout.seq) / seconds / gpus;
  cost.tflops_per_gpu = model_flops(model, layout) / seconds / gpus * 1e-12;
  cost.hardware_tflops_per_gpu = hardware_flops(model, layout) / seconds / gpus * 1e-12;
  return cost;
}

}  // namespace medley::plan

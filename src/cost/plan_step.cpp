#include "cost/plan_step.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "plan/export.hpp"

namespace medley::cost {
namespace {

void add_fit(MachineTime& time, const Memory& fullest) {
  time.gpu_bytes = gpu_memory_bytes(time.machine.memory_gb);
  time.fits = static_cast<double>(fullest.total()) <= usable_memory(time.gpu_bytes);
  time.fit = fit_sentence(fullest, time.gpu_bytes);
}

// The difference between the framework and the textbook is the framework's doing.
void add_textbook(PlanResult& result) {
  if (result.framework == Framework::textbook) return;
  Layout layout = result.layout;
  layout.zero = plan::zero_stage(layout, result.framework);
  const auto rows = plan::rows_of(plan::make_schedule(result.model, layout, Framework::textbook, result.rank));
  for (const auto& [group, total] : plan::totals_by_group(rows)) {
    result.textbook[std::string(group)] = total.wire_bytes;
    if (result.volume.by_group.contains(group)) result.textbook_bytes += total.wire_bytes;
  }
}

}  // namespace

PlanSetting::PlanSetting(const PlanRequest& request)
    : framework(framework_of(request)), small(request.small), tokens(request.tokens) {
  if (!request.machine.empty()) machine = find_machine(request.machine);
  if (tokens != 0 && !machine)
    throw Error(ErrorKind::invalid, "--tokens needs --machine: without one, steps have no duration");
  if (!(tokens >= 0)) throw Error(ErrorKind::invalid, fmt::format("--tokens is {}; it must be above 0", tokens));
}

PlanResult plan_step(const PlanSetting& setting, const Model& model, Layout layout, std::optional<Count> rank) {
  const auto& [framework, machine, small, tokens] = setting;
  check(layout, model);
  PlanResult out;
  out.rank = rank ? *rank : plan::busiest_rank(model, layout, framework);
  if (machine) {
    Step step(model, layout, framework, out.rank);
    out.time = MachineTime{.machine = *machine, .cost = step.cost(*machine)};
    if (tokens > 0) out.time->training = training_time(layout, out.time->cost.step_us, tokens);
    out.schedule = std::move(step).schedule();
  } else {
    out.schedule = plan::make_schedule(model, layout, framework, out.rank);
  }
  out.fullest = fullest_gpu(model, layout, framework);
  out.memory = rank ? memory_per_gpu(model, layout, framework, *rank) : out.fullest.memory;
  if (out.time) add_fit(*out.time, out.fullest.memory);
  out.rows = plan::rows_of(out.schedule);
  out.volume = plan::volume_of(out.rows, small);
  out.assumptions = plan::assumptions(model, layout, framework);
  out.model = model;
  out.layout = layout;
  out.framework = framework;
  return out;
}

PlanResult make_plan(const PlanRequest& request) {
  if (request.rank && *request.rank < 0)
    throw Error(ErrorKind::invalid, fmt::format("--rank is {}; ranks start at 0", *request.rank));
  PlanResult result = plan_step(PlanSetting(request), model_of(request), layout_of(request), request.rank);
  add_textbook(result);
  return result;
}

std::string misfit_text(const PlanResult& result) {
  return fmt::format("the layout does not fit {}: rank {} needs {}; shard or recompute more, or pass --force",
                     result.time->machine.name, result.fullest.rank, result.time->fit);
}

nlohmann::ordered_json to_json(const MachineTime& time, const FullestGpu& fullest) {
  nlohmann::ordered_json breakdown;
  for (std::size_t i = 0; i < cause_count; ++i)
    breakdown[std::string(name(static_cast<Cause>(i)))] = time.cost.spent[i];
  nlohmann::ordered_json json = {{"machine", time.machine.name},
                                 {"step_us", time.cost.step_us},
                                 {"tokens_per_s_per_gpu", time.cost.tokens_per_s_per_gpu},
                                 {"tflops_per_gpu", time.cost.tflops_per_gpu},
                                 {"hardware_tflops_per_gpu", time.cost.hardware_tflops_per_gpu},
                                 {"fits", time.fits},
                                 {"fullest_rank", fullest.rank},
                                 {"fit", time.fit},
                                 {"gpu_memory", static_cast<Count>(time.gpu_bytes)},
                                 {"breakdown", std::move(breakdown)}};
  if (time.training) json["training"] = to_json(*time.training);
  return json;
}

nlohmann::ordered_json to_json(const PlanResult& result) {
  nlohmann::ordered_json json = {{"model", plan::to_json(result.model)},
                                 {"layout", plan::to_json(result.layout)},
                                 {"framework", plan::name(result.framework)},
                                 {"assumptions", result.assumptions},
                                 {"world", result.layout.world()},
                                 {"rank", result.rank},
                                 {"rows", plan::to_json(result.rows)}};
  json.update(plan::to_json(result.volume));
  json["memory"] = to_json(result.memory);
  json["textbook"] = result.textbook;
  if (result.time) json.update(to_json(*result.time, result.fullest));
  return json;
}

}  // namespace medley::cost

#include "cost/calibrate_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <medley/error.hpp>
#include <utility>

#include "model/text.hpp"

namespace medley::cost {
namespace {

std::vector<MeasuredStep> read_steps_of(const CalibrateRequest& request, const std::string& gpu,
                                        std::vector<std::string>& skipped) {
  const auto framework = plan::parse_framework(request.framework);
  if (!framework && !request.framework.empty())
    throw Error(ErrorKind::invalid, fmt::format("unknown framework '{}'", request.framework));
  std::vector<MeasuredStep> steps;
  for (const std::string& file : request.data) {
    for (MeasuredStep& step : read_measured(model::read_file(file), file, request.vocab,
                                            request.skip_bad_rows ? &skipped : nullptr, request.trace_time)) {
      if (!step.gpu.empty() && step.gpu != gpu) continue;  // of another machine
      if (framework) step.framework = *framework;
      steps.push_back(std::move(step));
    }
  }
  if (steps.empty())
    throw Error(ErrorKind::invalid, fmt::format("no step of a {} is in {}", gpu, fmt::join(request.data, ", ")));
  return steps;
}

nlohmann::ordered_json error_json(const PredictionError& e) {
  return {{"mape", e.mape}, {"worst", e.worst}, {"bias", e.bias}};
}

}  // namespace

CalibrateResult calibrate_machine(const CalibrateRequest& request) {
  CalibrateResult result{.data = request.data,
                         .framework = request.framework,
                         .before = {},
                         .machine = find_machine(request.machine),
                         .fit = {},
                         .held_out = {}};
  result.before = result.machine.constants;
  const auto steps = read_steps_of(request, result.machine.gpu.name, result.skipped);
  Halves halves = split(steps);
  if (request.all) halves.fit = steps;
  if (!request.check_only) result.machine.constants = fit_constants(halves.fit, result.machine, request.keep);
  result.fit_steps = halves.fit.size();
  result.held_out_steps = halves.held_out.size();
  result.fit = prediction_error(halves.fit, result.machine);
  result.held_out = prediction_error(halves.held_out, result.machine);
  return result;
}

nlohmann::ordered_json to_json(const CalibrateResult& result) {
  nlohmann::ordered_json constants;
  for (const ConstantRow& row : constant_rows) constants[std::string(row.name)] = result.machine.constants.*row.member;
  return {{"framework", result.framework},           {"machine", result.machine.name},
          {"constants", std::move(constants)},       {"fit", error_json(result.fit)},
          {"held_out", error_json(result.held_out)}, {"skipped", result.skipped}};
}

std::string machine_toml(const CalibrateResult& result) {
  const Machine& m = result.machine;
  std::string text = fmt::format(
      "# Calibrated on {} by medley plan calibrate.\nformat = {}\ngpu = \"{}\"\ngpus_per_host = "
      "{}\nmemory_gb = {}\n",
      fmt::join(result.data, ", "), machine_format, m.gpu.name, m.gpus_per_host, m.memory_gb);
  if (m.gpu_share != 1) text += fmt::format("gpu_share = {}\n", m.gpu_share);
  if (m.nvls_gb_per_s > 0) text += fmt::format("nvls_gb_per_s = {}\n", m.nvls_gb_per_s);
  for (const auto& [name, link] : {std::pair{"inside", m.inside}, {"between", m.between}})
    text += fmt::format("\n[{}]\nlatency_us = {}\nbandwidth_gb_per_s = {}\n", name, link.latency_us, link.gb_per_s);
  if (m.between.message_gap_us > 0) text += fmt::format("message_gap_us = {}\n", m.between.message_gap_us);
  for (const Level& level : m.above)
    text += fmt::format("\n[{}]\nunits = {}\noversubscription = {}\nlatency_us = {}\n", level.name, level.hosts,
                        level.oversubscription, level.latency_us);
  text += "\n[constants]\n";
  for (const ConstantRow& row : constant_rows) text += fmt::format("{} = {:.6g}\n", row.name, m.constants.*row.member);
  return text;
}

}  // namespace medley::cost

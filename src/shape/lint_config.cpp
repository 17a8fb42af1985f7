#include "shape/lint_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/text.hpp"
#include "shape/rules.hpp"

namespace medley::shape {
namespace {

// The time of the GPU is judged, not of the host: launches as in a CUDA graph, so that the micro-batch of one
// that every command assumes does not blame everything on them. A very long sequence would blame attention.
Workload judged_workload(LintRequest request, const Model& model) {
  if (request.seq == 0) request.seq = std::min<Count>(model.seq, 4096);
  Workload work = unchecked_workload(request);
  work.layout.flags.cuda_graphs = true;
  return work;
}

}  // namespace

LintResult lint_config(const LintRequest& request) {
  const GpuModel gpu = GpuModel::named(request.gpu);
  const Model model = shape_model(request.model, request.as);
  const Workload work = judged_workload(request, model);
  const std::string text = model::is_file(request.model) ? model::read_file(request.model) : std::string{};
  Pricer pricer(gpu);
  LintFindings found = lint(pricer, model, work, request.allow, text);
  return {.file = request.model,
          .gpu = gpu,
          .allow = request.allow,
          .layout = work.layout,
          .findings = std::move(found.findings),
          .together = found.together};
}

nlohmann::ordered_json to_json(const LintResult& result) {
  using Json = nlohmann::ordered_json;
  Json findings = Json::array();
  for (const Finding& f : result.findings)
    findings.push_back({{"file", result.file},
                        {"key", f.key},
                        {"value", f.value},
                        {"better", f.better > 0 ? Json(f.better) : Json()},
                        {"waste", result.gpu.calibrated() && f.better > 0 ? Json(f.waste) : Json()},
                        {"why", f.why}});
  return {{"file", result.file},
          {"gpu", result.gpu.gpu().name},
          {"calibrated", result.gpu.calibrated()},
          {"allow", result.allow},
          {"findings", std::move(findings)},
          {"together", result.gpu.calibrated() ? Json(result.together) : Json()}};
}

std::string sentence(const LintResult& result, const Finding& f) {
  if (f.better == 0) return fmt::format("{} {} {} (rule 4)", f.key, f.value, f.why);
  if (result.gpu.calibrated())
    return fmt::format("{} {} wastes {:.1f} % of the step on {}: {} would not ({})", f.key, f.value, 100 * f.waste,
                       result.gpu.gpu().name, f.better, f.why);
  return fmt::format("{} {} wastes time on {}: {} should run {} ({})", f.key, f.value, result.gpu.gpu().name, f.better,
                     gain_text(1 / (1 - f.waste) - 1, false), f.why);
}

std::string joint_sentence(const LintResult& result) {
  if (result.findings.size() < 2 || result.together <= 0) return {};
  if (!result.gpu.calibrated())
    return fmt::format("each alone; together they should run {}", gain_text(1 / (1 - result.together) - 1, false));
  return fmt::format("each alone; together they waste {:.1f} % of the step", 100 * result.together);
}

}  // namespace medley::shape

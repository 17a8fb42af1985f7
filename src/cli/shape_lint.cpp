// medley shape lint: fails a build when a shape wastes more of a GPU's time than allowed.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "cli/command.hpp"
#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "shape/lint.hpp"
#include "shape/rules.hpp"
#include "shape/step.hpp"

namespace medley::cli {
namespace {

using nlohmann::ordered_json;

struct LintOptions : ShapeOptions {
  std::string allow = "5%";
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Unless told otherwise the step is a common one: sequences of at most 4096 tokens, micro-batches of about
// 8192. One short sequence would blame everything on launches, a very long one on attention.
shape::Workload usual_workload(const LintOptions& options, const plan::Model& model) {
  LintOptions filled = options;
  if (filled.seq == 0) filled.seq = std::min<plan::Count>(model.seq, 4096);
  if (filled.micro_batch == 0)
    filled.micro_batch = std::max<plan::Count>(1, 8192 / std::max<plan::Count>(1, filled.seq));
  return filled.unchecked_workload();
}

std::string sentence(const shape::Finding& f, const std::string& gpu, bool calibrated) {
  if (f.better == 0) return fmt::format("{} {} {} (rule 4)", f.key, f.value, f.why);
  if (calibrated)
    return fmt::format("{} {} wastes {:.1f} % of the step on {}: {} would not ({})", f.key, f.value,
                       100 * f.waste, gpu, f.better, f.why);
  return fmt::format("{} {} wastes time on {}: {} should run {} ({})", f.key, f.value, gpu, f.better,
                     shape::gain_text(1 / (1 - f.waste) - 1, false), f.why);
}

int lint_model(const LintOptions& options) {
  const double allow = parse_share(options.allow, "--allow");
  const auto gpu = shape::GpuModel::named(options.gpu);
  const auto model = shape_model(options.model, options.as);
  shape::Pricer pricer(gpu);
  const auto work = usual_workload(options, model);
  const auto findings = shape::lint(pricer, model, work, allow, text_of(options.model));
  ordered_json rows = ordered_json::array();
  for (const auto& f : findings)
    rows.push_back({{"file", options.model},
                    {"key", f.key},
                    {"value", f.value},
                    {"better", f.better > 0 ? ordered_json(f.better) : ordered_json()},
                    {"waste", gpu.calibrated() && f.better > 0 ? ordered_json(f.waste) : ordered_json()},
                    {"why", f.why}});
  if (options.json != "-") {
    for (const auto& f : findings)
      fmt::print("{}: {}\n", options.model, sentence(f, gpu.gpu().name, gpu.calibrated()));
    if (findings.empty())
      fmt::print("{}: nothing wastes more than {:g} % on {} (tp {}, micro-batch {} of {} tokens)\n",
                 options.model, 100 * allow, gpu.gpu().name, work.layout.tp, work.layout.micro_batch,
                 work.layout.seq);
    if (!gpu.calibrated()) fmt::print("{}\n", trust_line(gpu));
  }
  write_json(options.json, {{"file", options.model},
                            {"gpu", gpu.gpu().name},
                            {"calibrated", gpu.calibrated()},
                            {"allow", allow},
                            {"findings", rows}});
  return findings.empty() ? 0 : 1;
}

}  // namespace

void add_shape_lint(CLI::App& shape) {
  auto options = std::make_shared<LintOptions>();
  options->micro_batch = 0;
  CLI::App* command =
      add_command(shape, "lint", "Exit 1 when a shape wastes more than allowed, naming file and key",
                  "medley shape lint config.json --gpu h200-sxm --allow 5% --tp 2",
                  [options] { return lint_model(*options); });
  command->add_option("config", options->model, "Config file, or a name of the zoo")->required();
  options->add_gpu(*command);
  options->add_layout(*command);
  command->add_option("--allow", options->allow, "Share of the step that one number may waste");
}

}  // namespace medley::cli

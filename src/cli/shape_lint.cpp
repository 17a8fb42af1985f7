// medley shape lint: fails a build when a shape wastes more of a GPU's time than allowed.
#include <fmt/format.h>

#include "cli/shape.hpp"
#include "cli/shape_options.hpp"
#include "shape/lint_config.hpp"

namespace medley::cli {
namespace {

struct LintOptions : shape::LintRequest {
  std::string allow_text = "5%", json;
};

void print_lint(const shape::LintResult& result) {
  for (const shape::Finding& f : result.findings) fmt::print("{}: {}\n", result.file, shape::sentence(result, f));
  if (const std::string joint = shape::joint_sentence(result); !joint.empty())
    fmt::print("{}: {}\n", result.file, joint);
  const shape::Layout& l = result.layout;
  if (result.findings.empty())
    fmt::print("{}: nothing wastes more than {:g} % on {} (tp {}, micro-batch {} of {} tokens)\n", result.file,
               100 * result.allow, result.gpu.gpu().name, l.tp, l.micro_batch, l.seq);
  if (!result.gpu.calibrated()) fmt::print("{}\n", trust_line(result.gpu));
}

int lint_model(LintOptions options) {
  options.allow = parse_share(options.allow_text, "--allow");
  const shape::LintResult result = shape::lint_config(options);
  if (options.json != "-") print_lint(result);
  write_json(options.json, to_json(result));
  return result.findings.empty() ? 0 : 1;
}

}  // namespace

void add_shape_lint(CLI::App& shape) {
  auto options = std::make_shared<LintOptions>();
  CLI::App* command = add_command(shape, "lint", "Exit 1 when a shape wastes more than allowed, naming file and key",
                                  "medley shape lint config.json --gpu h200-sxm --allow 5% --tp 2",
                                  [options] { return lint_model(*options); });
  command->add_option("config", options->model, "Config file, or a name of the zoo")->required();
  add_shape_gpu(*command, *options);
  add_shape_layout(*command, *options, options->json);
  command->add_option("--allow", options->allow_text, "Share of the step that one number may waste");
}

}  // namespace medley::cli

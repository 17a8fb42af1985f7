// medley shape: which shape runs faster on a GPU. The report on one model, and the parent of its subcommands.
#include "cli/shape.hpp"

#include "cli/shape_options.hpp"
#include "cli/shape_report.hpp"

namespace medley::cli {

namespace {

struct ReportOptions : shape::ShapeRequest {
  std::string json;
};

int run_report(const ReportOptions& options) {
  const shape::ShapeReport report = shape::report_shape(options);
  if (options.json != "-") print_shape_report(report);
  write_json(options.json, to_json(report));
  return 0;
}

}  // namespace

void add_shape(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  auto* shape = add_command(app, "shape", "Which model shape runs faster on a GPU",
                            "medley shape --model gpt3-2.7b --gpu h200-sxm --micro-batch 4\n"
                            "  medley shape --model config.json --gpu h200-sxm --tp 2 --json -",
                            nullptr);
  shape->callback([options, shape] {
    if (!shape->get_subcommands().empty()) return;  // its own action has run
    exit_with(run_report(*options));
  });
  add_shape_model(*shape, *options);
  add_shape_gpu(*shape, *options);
  add_shape_layout(*shape, *options, options->json);
  shape->require_subcommand(0, 1);
  add_shape_bench(*shape);
  add_shape_compare(*shape);
  add_shape_fit(*shape);
  add_shape_gemm(*shape);
  add_shape_lint(*shape);
  add_shape_paper(*shape);
  add_shape_search(*shape);
}

}  // namespace medley::cli

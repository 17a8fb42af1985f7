// medley shape: which shape runs faster on a GPU. The report on one model, and the parent of its subcommands.
#include "cli/shape.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>

#include "cli/shape_report.hpp"

namespace medley::cli {

void add_shape(CLI::App& app) {
  auto options = std::make_shared<ShapeOptions>();
  auto* shape = add_command(app, "shape", "Which model shape runs faster on a GPU",
                            "medley shape --model gpt3-2.7b --gpu h200-sxm --micro-batch 4\n"
                            "  medley shape --model config.json --gpu h200-sxm --tp 2 --json -",
                            nullptr);
  shape->callback([options, shape] {
    if (!shape->get_subcommands().empty()) return;  // its own action has run
    exit_status() = report_shape(*options);
  });
  options->add_model(*shape);
  options->add_gpu(*shape);
  options->add_layout(*shape);
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

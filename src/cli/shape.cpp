// medley shape: which shape runs faster on a GPU. The parent of its subcommands, one file each.
#include "cli/shape.hpp"
#include "cli/command.hpp"

namespace medley::cli {

void add_shape(CLI::App& app) {
  CLI::App* shape = add_command(app, "shape", "Which model shape runs faster on a GPU",
                                "medley shape gemm --gpu h200-sxm gemms.csv", nullptr);
  shape->require_subcommand(1);
  add_shape_bench(*shape);
  add_shape_fit(*shape);
  add_shape_gemm(*shape);
}

}  // namespace medley::cli

// The subcommands of `medley shape`, one file each.
#pragma once

#include "cli/command.hpp"

namespace medley::cli {

void add_shape_bench(CLI::App& shape);
void add_shape_fit(CLI::App& shape);
void add_shape_gemm(CLI::App& shape);

}  // namespace medley::cli

// The subcommands of `medley shape`, one file each.
#pragma once

#include "cli/command.hpp"

namespace medley::cli {

void add_shape_bench(CLI::App& shape);
void add_shape_compare(CLI::App& shape);
void add_shape_fit(CLI::App& shape);
void add_shape_gemm(CLI::App& shape);
void add_shape_lint(CLI::App& shape);
void add_shape_paper(CLI::App& shape);
void add_shape_search(CLI::App& shape);

}  // namespace medley::cli

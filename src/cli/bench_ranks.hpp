// What the commands that measure share: reading operations and types, the cores of their ranks, the backends there are.
#pragma once

#include <medley/medley.hpp>
#include <string>
#include <vector>

namespace medley::cli {

/// `all`, or names separated by commas. recv is measured together with send and left out of all.
std::vector<Op> ops_of(const std::string& text);
DType dtype_of_word(const std::string& word);
/// A core for each rank where there are enough, as MPI launchers do; ranks of other launchers are bound by those.
void bind_to_core();
std::vector<std::string> available_backends(const Context& context);

}  // namespace medley::cli

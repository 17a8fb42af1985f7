// Misspelt environment variables: MEDLEY_ names that Medley does not read. Used by contexts and by the command.
#pragma once

#include <string>
#include <vector>

#include <medley/export.hpp>

namespace medley {

/// A sentence for each of these names that begins with MEDLEY_ and is not in variables.txt, with the nearest name that is.
MEDLEY_API std::vector<std::string> about_unknown_variables(const std::vector<std::string>& names);

/// Prints that about this process's environment on stderr, once. Nothing where another process of the job does: the launcher
/// `medley run`, or rank 0.
MEDLEY_API void warn_of_unknown_variables();

}  // namespace medley

// Identifies an ancestor of this process. Used where a launcher gives its ranks no job id.
#pragma once

#include <string>

namespace medley {

/// Identifies the nearest ancestor whose command name is `command` (by its pid and start time on
/// this boot), or "" when none is visible.
std::string ancestor_identity(const std::string& command);

}  // namespace medley

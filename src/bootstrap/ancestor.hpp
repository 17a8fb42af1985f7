// Finds the process that this one descends from. Used where a launcher gives its ranks no name for the job.
#pragma once

#include <string>

namespace medley {

/// A text that stands for the nearest ancestor whose command name is `command` (its pid and start time on
/// this boot), or "" when there is none within sight.
std::string ancestor_identity(const std::string& command);

}  // namespace medley

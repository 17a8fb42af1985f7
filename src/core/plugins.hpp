// The backends this build knows. The one place that names them.
#pragma once

#include <medley/backend.hpp>
#include <vector>

namespace medley::core {

MEDLEY_API std::vector<const BackendPlugin*> known_backends();

}  // namespace medley::core

#include <medley/version.hpp>

namespace medley {

int library_version() noexcept { return MEDLEY_VERSION; }

}  // namespace medley

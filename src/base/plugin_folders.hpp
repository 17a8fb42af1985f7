// Where Medley searches for its shared objects: backends and the device plugin.
#pragma once

#include <filesystem>
#include <medley/export.hpp>
#include <vector>

namespace medley::core {

/// The folders of MEDLEY_BACKEND_PATH (separated by colons), then the folder `medley` next to libmedley.so.
MEDLEY_API std::vector<std::filesystem::path> plugin_folders();

}  // namespace medley::core

#include "base/plugin_folders.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <system_error>

#include "base/split.hpp"

namespace medley::core {

namespace fs = std::filesystem;

std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  if (const char* text = std::getenv("MEDLEY_BACKEND_PATH")) {
    for (const std::string& folder : split(text, ':')) folders.emplace_back(folder);
  }
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&plugin_folders), &self) != 0 && self.dli_fname) {
    std::error_code ignored;
    const fs::path library = fs::canonical(self.dli_fname, ignored);
    if (!library.empty()) folders.push_back(library.parent_path() / "medley");
  }
  return folders;
}

}  // namespace medley::core

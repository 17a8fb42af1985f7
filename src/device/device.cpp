#include <medley/sdk/device.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/plugin_folders.hpp"

namespace medley {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libmedley_device_cuda.so";

fs::path find_file() {
  std::error_code ignored;
  for (const fs::path& folder : core::plugin_folders()) {
    if (fs::exists(folder / file_name, ignored)) return folder / file_name;
  }
  return {};
}

std::string missing_file() {
  std::string folders;
  for (const fs::path& folder : core::plugin_folders()) folders += (folders.empty() ? "" : ", ") + folder.native();
  return fmt::format("Medley's CUDA part, {}, is not in {}; build Medley where CUDA is installed", file_name,
                     folders.empty() ? "any folder" : folders);
}

Error unavailable(const std::string& why) {
  return Error(ErrorKind::unavailable, fmt::format("CUDA memory cannot be used: {}", why));
}

const DevicePlugin& plugin() {
  const fs::path file = find_file();
  if (file.empty()) throw unavailable(missing_file());
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: CUDA keeps threads and handlers
  if (!object) {
    const char* why = dlerror();
    throw unavailable(fmt::format("{} cannot be loaded: {}", file.native(), why ? why : "no reason given"));
  }
  const auto entry = reinterpret_cast<const DevicePlugin* (*)()>(dlsym(object, "medley_device"));
  const DevicePlugin* found = entry ? entry() : nullptr;
  if (!found) throw unavailable(fmt::format("{} does not export medley_device()", file.native()));
  if (found->abi != device_abi) {
    throw unavailable(fmt::format("{} was built for {} but this Medley has {}; build it again", file.native(),
                                  found->abi, device_abi));
  }
  return *found;
}

}  // namespace

std::string why_no_device() {
  const char* wish = std::getenv("MEDLEY_CUDA");
  if (wish && std::string_view(wish) == "0") return "MEDLEY_CUDA=0 switches it off";
  if (find_file().empty()) return missing_file();
  std::error_code ignored;
  if (wish && std::string_view(wish) == "1") return {};
  return fs::exists("/dev/nvidiactl", ignored) ? std::string() : "this machine has no NVIDIA driver";
}

std::unique_ptr<Device> open_device(int index) { return plugin().open(index); }

int device_count() { return plugin().count(); }

}  // namespace medley

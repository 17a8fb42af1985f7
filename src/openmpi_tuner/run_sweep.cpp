#include <dlfcn.h>
#include <fmt/format.h>

#include <medley/error.hpp>

#include "base/plugin_folders.hpp"
#include "openmpi_tuner/sweep.hpp"

namespace medley::openmpi_tuner {

SweepResult run_sweep(const SweepRequest& request, const SweepHooks& hooks) {
  std::string tried;
  for (const std::filesystem::path& folder : core::plugin_folders()) {
    const std::filesystem::path file = folder / "libmedley_openmpi_tuner.so";
    void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!object) {
      const char* why = dlerror();
      tried += fmt::format("{}{}", tried.empty() ? "" : "; ", why ? why : file.c_str());
      continue;
    }
    const auto run = reinterpret_cast<Sweep*>(dlsym(object, sweep_symbol));
    if (!run) throw Error(ErrorKind::unavailable, fmt::format("{} does not export {}", file.native(), sweep_symbol));
    SweepResult result;
    run(request, hooks, result);
    return result;
  }
  throw Error(
      ErrorKind::unavailable,
      fmt::format(
          "the part of Medley that measures Open MPI cannot be loaded: {}; it is built where Open MPI's headers are installed",
          tried));
}

}  // namespace medley::openmpi_tuner

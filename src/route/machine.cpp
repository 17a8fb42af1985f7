#include "route/machine.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace medley::route {
namespace {

namespace fs = std::filesystem;

std::string trimmed(std::string text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), blank));
  text.erase(std::find_if_not(text.rbegin(), text.rend(), blank).base(), text.end());
  return text;
}

/// The text after the colon of the first line that starts with `key`.
std::string value_in(const fs::path& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) return trimmed(line.substr(colon + 1));
  }
  return {};
}

/// "2 x mlx5, 1 x hfi1" from the kinds of a folder's entries; empty if there are none.
template <typename Kind>
std::string counted(const fs::path& folder, Kind&& kind_of) {
  std::map<std::string, int> kinds;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (const std::string kind = kind_of(entry.path()); !kind.empty()) ++kinds[kind];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, kind);
  return text;
}

std::string named(const std::string& text) { return text.empty() ? "none" : text; }

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cpu = value_in("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = value_in("/proc/cpuinfo", "CPU part");  // aarch64 gives numbers only
  machine.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // not the affinity mask, which launchers change
  machine.gpu =
      counted("/proc/driver/nvidia/gpus", [](const fs::path& gpu) { return value_in(gpu / "information", "Model"); });
  machine.fabric = counted("/sys/class/infiniband", [](const fs::path& device) {
    const std::string name = device.filename();
    return name.substr(0, name.find('_'));  // mlx5_0, mlx5_1: one kind
  });
  return machine;
}

std::string misfit(const Machine& theirs, const Machine& here) {
  if (theirs.cpu != here.cpu)
    return fmt::format("it was measured on {}, this is {}", named(theirs.cpu), named(here.cpu));
  if (theirs.cores != here.cores) {
    return fmt::format("it was measured with {} cores on a host, here are {}", theirs.cores, here.cores);
  }
  if (theirs.gpu != here.gpu)
    return fmt::format("its hosts have as GPUs {}, this one {}", named(theirs.gpu), named(here.gpu));
  if (theirs.fabric != here.fabric) {
    return fmt::format("its hosts have as network adapters {}, this one {}", named(theirs.fabric), named(here.fabric));
  }
  for (const auto& [backend, version] : theirs.libraries) {
    const auto own = here.libraries.find(backend);
    if (own != here.libraries.end() && own->second != version) {
      return fmt::format("it was measured with {} {}, here is {}", backend, version, own->second);
    }
  }
  return {};
}

}  // namespace medley::route

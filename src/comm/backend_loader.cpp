#include "comm/backend_loader.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/plugin_folders.hpp"

namespace medley::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "libmedley_backend_", suffix = ".so";

/// NAME of libmedley_backend_NAME.so or libmedley_backend_NAME-VARIANT.so; empty for other files.
std::string name_of(const fs::path& file) {
  std::string name = file.filename();
  if (!name.starts_with(prefix) || !name.ends_with(suffix) || name.size() <= prefix.size() + suffix.size()) return {};
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return name.substr(0, name.find('-'));
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;  // a folder that is not there has no plugins
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!name_of(entry.path()).empty()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The plugin in a file; if there is none, `reason` says why.
const BackendPlugin* open_plugin(const fs::path& file, const std::string& name, std::string& reason) {
  // RTLD_LOCAL hides the symbols of one backend's libraries from another's. A library that loads components which
  // expect its symbols to be global (Open MPI) is reopened with RTLD_GLOBAL by its plugin.
  void* object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    const char* why = dlerror();
    reason = fmt::format("it cannot be loaded: {}", why ? why : "the dynamic linker does not say why");
    return nullptr;
  }
  const auto entry = reinterpret_cast<const BackendPlugin* (*)()>(dlsym(object, "medley_backend"));
  const BackendPlugin* plugin = entry ? entry() : nullptr;
  if (!plugin) {
    reason = fmt::format("{} is no Medley backend: it {} medley_backend()", file.native(),
                         entry ? "returns nothing from" : "does not export");
  } else if (plugin->abi != backend_abi) {  // no field after `abi` is read: another version may have another layout
    reason = fmt::format("{} was built for {} but this Medley has {}; build it again", file.native(), plugin->abi,
                         backend_abi);
  } else if (plugin->build != build_abi) {
    reason = fmt::format(
        "{} was built with {} but this Medley with {}; build both with the same compiler and standard library",
        file.native(), plugin->build, build_abi);
  } else if (plugin->sizes != BackendPlugin::boundary_sizes()) {
    reason = fmt::format("{} was built with other headers of {} than this Medley; build it again", file.native(),
                         backend_abi);
  } else if (plugin->name != name) {
    reason = fmt::format("{} holds a backend that calls itself {}", file.native(), plugin->name);
  } else {
    return plugin;
  }
  return nullptr;
}

std::string ask(const BackendPlugin& plugin) {
  try {
    return plugin.unavailable();
  } catch (const std::exception& error) {
    return fmt::format("it failed to look at this machine: {}", error.what());
  } catch (...) {
    return "it failed to look at this machine";
  }
}

bool built_in(const std::string& name) {
  const auto all = builtin_backends();
  return std::any_of(all.begin(), all.end(), [&](const BackendPlugin* plugin) { return plugin->name == name; });
}

}  // namespace

void KnownBackend::load() {
  if (plugin_) return;  // built in
  for (const fs::path& file : files_) {
    std::string reason;
    const BackendPlugin* plugin = open_plugin(file, name_, reason);
    if (plugin && (reason = ask(*plugin)).empty()) {
      plugin_ = plugin;
      return;
    }
    if (plugin && !plugin_) plugin_ = plugin;
    reason_ += (reason_.empty() ? "" : "; ") + reason;
  }
}

const BackendPlugin* KnownBackend::plugin() {
  std::call_once(once_, [this] { load(); });
  return plugin_;
}

std::string KnownBackend::unavailable() {
  const BackendPlugin* found = plugin();
  return found ? ask(*found) : reason_;
}

KnownBackends find_backends(const std::vector<fs::path>& folders) {
  std::map<std::string, std::unique_ptr<KnownBackend>> found;
  for (const fs::path& folder : folders) {
    for (fs::path& file : files_in(folder)) {
      const std::string name = name_of(file);
      if (built_in(name)) continue;
      auto& backend = found[name];
      if (!backend) backend = std::make_unique<KnownBackend>(name);
      backend->add_file(std::move(file));
    }
  }
  KnownBackends all;
  for (const BackendPlugin* plugin : builtin_backends())
    all.push_back(std::make_unique<KnownBackend>(std::string(plugin->name), *plugin));
  for (auto& [name, backend] : found) all.push_back(std::move(backend));
  return all;
}

const KnownBackends& known_backends() {
  // Never destroyed: a context may be used by a thread that outlives main().
  static const auto* const all = new KnownBackends(find_backends(plugin_folders()));
  return *all;
}

KnownBackend* find_backend(std::string_view name) {
  for (const auto& backend : known_backends()) {
    if (backend->name() == name) return backend.get();
  }
  return nullptr;
}

}  // namespace medley::core

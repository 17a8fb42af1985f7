// The backends this process can find: the built-in shm, and shared objects beside the library or in
// MEDLEY_BACKEND_PATH. Used by a context and `medley info`; a plugin is loaded only when it is requested by name, or
// when all are.
#pragma once

#include <filesystem>
#include <medley/backend.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace medley::core {

/// A backend found by its name. The first request loads its shared object, which stays loaded: libraries behind
/// backends keep threads and handlers that outlive every context.
class MEDLEY_API KnownBackend {
 public:
  KnownBackend(std::string name, const BackendPlugin& built_in) : name_(std::move(name)), plugin_(&built_in) {}
  explicit KnownBackend(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  /// Null when it cannot be loaded.
  const BackendPlugin* plugin();
  /// Why it cannot run on this machine, in one line; empty if it can. Never throws.
  std::string unavailable();
  /// Another shared object that may provide this name; the first that can run here is used.
  void add_file(std::filesystem::path file) { files_.push_back(std::move(file)); }

 private:
  void load();
  std::string name_;
  std::vector<std::filesystem::path> files_;
  std::once_flag once_;
  const BackendPlugin* plugin_ = nullptr;
  std::string reason_;
};

using KnownBackends = std::vector<std::unique_ptr<KnownBackend>>;

/// Backends compiled into the library (src/library/).
std::span<const BackendPlugin* const> builtin_backends();

/// The built-in ones, then the plugins of these folders by name. A file is called libmedley_backend_NAME.so, or
/// libmedley_backend_NAME-VARIANT.so where several builds of one backend exist side by side.
MEDLEY_API KnownBackends find_backends(const std::vector<std::filesystem::path>& folders);

/// Those of this process, found once.
MEDLEY_API const KnownBackends& known_backends();

/// The one with this name, or null.
MEDLEY_API KnownBackend* find_backend(std::string_view name);

}  // namespace medley::core

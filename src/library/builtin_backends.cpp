// The backends that libmedley.so has built in; all others are plugins that comm/backend_loader.cpp finds and opens.
#include "backends/shm/plugin.hpp"
#include "comm/backend_loader.hpp"

namespace medley::core {

std::span<const BackendPlugin* const> builtin_backends() {
  static const BackendPlugin* const plugins[] = {&shm::plugin()};
  return plugins;
}

}  // namespace medley::core

// Names of hierarchical backends, such as shm+mpi: the first inside each host, the second between hosts.
#pragma once

#include <string_view>

namespace medley::route {

constexpr bool is_pair(std::string_view backend) { return backend.find('+') != std::string_view::npos; }

/// For a backend that is not a pair, the backend itself.
constexpr std::string_view inside_of(std::string_view backend) { return backend.substr(0, backend.find('+')); }
constexpr std::string_view between_of(std::string_view backend) {
  return is_pair(backend) ? backend.substr(backend.find('+') + 1) : backend;
}

}  // namespace medley::route

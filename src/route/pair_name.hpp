// Names of hierarchical backends, such as shm+mpi: the first inside each host, the second between hosts.
#pragma once

#include <string_view>

#include "route/key.hpp"

namespace medley::route {

constexpr bool is_pair(std::string_view backend) { return backend.find('+') != std::string_view::npos; }

/// For a backend that is not a pair, the backend itself.
constexpr std::string_view inside_of(std::string_view backend) { return backend.substr(0, backend.find('+')); }
constexpr std::string_view between_of(std::string_view backend) {
  return is_pair(backend) ? backend.substr(backend.find('+') + 1) : backend;
}

/// The backend that carries the operations of such a comm when `backend` is requested: a pair such as shm+mpi is its first half within
/// a host, and its second where no two ranks share one.
constexpr std::string_view backend_on(const Shape& shape, std::string_view backend) {
  if (shape.hosts > 1 && shape.ranks_per_host > 1) return backend;
  return shape.hosts == 1 ? inside_of(backend) : between_of(backend);
}

}  // namespace medley::route

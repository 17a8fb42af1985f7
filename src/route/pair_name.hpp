// Names of backends made of two. shm+mpi, a pair: the first inside each host, the second between hosts. shm|ucx, a
// split: a tensor's first part over the first, the rest over the second, at the same time.
#pragma once

#include <array>
#include <string_view>

#include "route/key.hpp"

namespace medley::route {

constexpr bool is_pair(std::string_view backend) { return backend.find('+') != std::string_view::npos; }
constexpr bool is_split(std::string_view backend) { return backend.find('|') != std::string_view::npos; }
constexpr bool is_made_of_two(std::string_view backend) { return is_pair(backend) || is_split(backend); }

/// For a single backend, twice the backend itself.
constexpr std::array<std::string_view, 2> halves_of(std::string_view backend) {
  const std::size_t at = backend.find_first_of("+|");
  return {backend.substr(0, at), at == std::string_view::npos ? backend : backend.substr(at + 1)};
}

/// For a backend that is not a pair, the backend itself.
constexpr std::string_view inside_of(std::string_view backend) { return backend.substr(0, backend.find('+')); }
constexpr std::string_view between_of(std::string_view backend) {
  return is_pair(backend) ? backend.substr(backend.find('+') + 1) : backend;
}

/// The backend that carries the operations of such a comm when `backend` is requested. A pair such as shm+mpi is its
/// first half within a host, and its second on several hosts unless their ranks are `in_blocks` (core::in_equal_blocks).
constexpr std::string_view backend_on(const Shape& shape, std::string_view backend, bool in_blocks) {
  if (shape.hosts == 1) return inside_of(backend);
  return shape.ranks_per_host > 1 && in_blocks ? backend : between_of(backend);
}

}  // namespace medley::route

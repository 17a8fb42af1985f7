// The preferred library of a comm: the one that loses least to the best routes over all its operations (for shm+mpi
// that is mpi, which takes most of the time). Where the measurement cannot separate two routes, choosing takes this
// library's, since overlapping operations are slower over two libraries than over one: both need polling, and neither
// knows of the other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "route/table.hpp"

namespace medley::route {

class MEDLEY_API PreferredLibrary {
 public:
  /// `usable`: which routes the comm can take, for any of its operations.
  PreferredLibrary(const Table& table, Memory memory, const Shape& shape,
                   const std::function<bool(const Choice&)>& usable)
      : table_(table), memory_(memory), shape_(shape), usable_(usable) {}
  /// Computed on first use: most choices are clear without it.
  const std::string& library();

 private:
  const Table& table_;
  Memory memory_;
  Shape shape_;
  const std::function<bool(const Choice&)>& usable_;
  std::optional<std::string> found_;
};

}  // namespace medley::route

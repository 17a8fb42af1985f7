// The library that a comm is at preferred with (of shm+mpi it is mpi, which takes most of the time): the one that loses least to the best routes over all its operations. Where the
// measurement does not tell two routes apart, choosing takes the one of this library, since operations that overlap are slower
// over two libraries than over one: both want to be polled, and neither knows of the other.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "route/table.hpp"

namespace medley::route {

class PreferredLibrary {
 public:
  /// `usable`: which routes the comm can take, of any of its operations.
  PreferredLibrary(const Table& table, Memory memory, const Shape& shape, const std::function<bool(const Choice&)>& usable)
      : table_(table), memory_(memory), shape_(shape), usable_(usable) {}
  /// Looked for when it is asked for: most choices are clear without it.
  const std::string& library();

 private:
  const Table& table_;
  Memory memory_;
  Shape shape_;
  const std::function<bool(const Choice&)>& usable_;
  std::optional<std::string> found_;
};

}  // namespace medley::route

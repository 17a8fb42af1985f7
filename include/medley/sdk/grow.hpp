// Room for one more element of a vector, where adding it must not fail. Used by backends and algorithms, before what
// they could not undo.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace medley {

/// Doubles the capacity where it is exhausted: reserve(size() + 1) alone would copy everything for each element.
template <class T>
void make_room_for_one(std::vector<T>& vector) {
  constexpr std::size_t least = 16;
  if (vector.size() == vector.capacity()) vector.reserve(std::max(least, 2 * vector.capacity()));
}

}  // namespace medley

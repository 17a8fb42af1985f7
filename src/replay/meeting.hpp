// Where ranks come together in a step. Predictions put them in order, replay times them one by one.
#pragma once

#include <cstddef>
#include <vector>

namespace medley::replay {

/// A collective of a group, or a message: ranks come together.
struct Meeting {
  std::vector<int> who;  ///< of the world; of a message the sender first
  bool message = false;
  std::vector<std::size_t> entries;  ///< what it is to each of them, by its place in its schedule
};

}  // namespace medley::replay

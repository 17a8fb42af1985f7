// Where ranks meet in a step. Predictions order these meetings, replay times them one by one.
#pragma once

#include <cstddef>
#include <vector>

namespace medley::replay {

/// A collective of a group, or a message.
struct Meeting {
  std::vector<int> who;  ///< world ranks; for a message the sender first
  bool message = false;
  std::vector<std::size_t> entries;  ///< for each of them, its index in that rank's schedule
};

}  // namespace medley::replay

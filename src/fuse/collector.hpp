// The collectives that a fuse scope has collected on one comm and not issued yet. Filled by the engine, under its lock.
#pragma once

#include <optional>
#include <vector>

#include "fuse/compose.hpp"
#include "fuse/footprint.hpp"

namespace medley::core {
class Operation;
}

namespace medley::fuse {

struct Collector {
  /// A flush follows the tensor that reaches one of these. Both count what all ranks issue, so all ranks flush at the
  /// same tensor.
  static constexpr std::int64_t most_bytes = most_message_bytes;
  static constexpr std::size_t most_members = 4096;

  int depth = 1;  ///< open scopes on the comm, one inside another
  std::vector<Member> members{};
  std::vector<core::Operation*> handles{};  ///< of the members' Works; a reference each
  Footprint footprint{};
  std::int64_t bytes = 0;
  std::optional<void*> stream{};  ///< of the members on CUDA memory, if there are any

  bool full() const { return bytes >= most_bytes || members.size() >= most_members; }
};

}  // namespace medley::fuse

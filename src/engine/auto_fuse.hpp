// Automatic fusion on one comm: the agreement of its ranks on how many of the collected collectives travel together
// (docs/proofs.md, "Fused collectives"). Owned by the comm, under the engine's lock.
#pragma once

#include <chrono>
#include <medley/store.hpp>

namespace medley::core {

class Operation;

struct AutoFuse {
  /// How long a collective waits for others to travel with, where nobody waits for it: a fraction of the time that a
  /// program takes to issue the gradients of a few layers. Only this rank's part in the agreement depends on it.
  static constexpr std::chrono::microseconds longest_collection{100};

  Operation* agreement = nullptr;  ///< under way; the engine's pending list holds the reference
  bool asked = false;              ///< somebody waits for a collected operation
  Deadline due = Deadline::max();  ///< of the oldest collected operation
};

}  // namespace medley::core

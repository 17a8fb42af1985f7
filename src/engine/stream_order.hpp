// What the order of launches in CUDA streams asks for beyond memory and lanes. Part of the scheduler.
//
// - Comms that share a device are launched in one order on all ranks, so a collective that is held back holds back the
//   collectives of other lanes in streams that come after it.
// - Two ranks that connect for their first message copy to the device in streams of NCCL's own. CUDA gives streams few work
//   queues, and behind a kernel that waits for the peer these copies may wait for ever (docs/guarantees.md). So a collective is
//   held while an earlier message connects, but for a second at most.
// - A host that waits for a stream withholds CUDA's locks and its own time: it may do so once nothing else is left to the host.
#pragma once

#include <vector>

#include "engine/operation.hpp"

namespace medley::core {

class MEDLEY_API StreamOrder {
 public:
  /// Counts a pending operation. Its lane is known.
  void add(Operation& operation);
  /// Its work is in its stream, or on a host lane in the library's hands.
  void launched(Operation& operation);
  void finished(Operation& operation);

  /// The latest collective of a lane in streams that is not launched.
  Operation* last_collective() const { return last_collective_; }
  /// Messages of lanes in streams that are not launched.
  const std::vector<Operation*>& connecting() const { return connecting_; }

  /// Whether the host has something to do for any pending operation, CUDA calls among it; one in its stream needs nobody.
  bool any_left_to_host() const { return left_to_host_ > 0; }
  /// The same of all but the one that is waited for, or the members of that batch.
  bool others_left_to_host(const Operation& waited) const;

 private:
  Operation* last_collective_ = nullptr;
  std::vector<Operation*> connecting_;
  int left_to_host_ = 0;
};

}  // namespace medley::core

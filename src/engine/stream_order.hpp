// Ordering that CUDA streams need beyond memory hazards and lane order. Part of the scheduler.
//
// - Comms that share a device must launch in one order on all ranks. So a held collective also holds later collectives of other
//   stream lanes.
// - Two ranks that connect for their first message copy to the device in NCCL's own streams. CUDA maps streams to few work
//   queues, and behind a kernel that waits for the peer these copies may wait for ever (docs/proofs.md). So a collective is
//   held while an earlier message connects, for a second at most.
// - A pair such as nccl+mpi launches its last phase when the host has finished the one before, which no place in the order of issue
//   determines. So a collective is held while an earlier one has launches left, again for a second at most.
// - A host that waits for a stream holds CUDA's locks and makes no progress. It may wait only when no pending operation needs
//   the host.
#pragma once

#include <vector>

#include "engine/comm_state.hpp"
#include "engine/operation.hpp"

namespace medley::core {

class MEDLEY_API StreamOrder {
 public:
  /// Counts a pending operation, whose lane is known.
  void add(Operation& operation) {
    operation.needs_host = true;
    ++needing_host_;
    if (operation.lane->ordered_on_device()) add_on_device(operation);
  }
  /// The operation is launched: in its stream, or on a host lane passed to the library.
  void launched(Operation& operation);
  void finished(Operation& operation) {
    if (operation.needs_host) --needing_host_;
    operation.needs_host = false;
    if (operation.lane->ordered_on_device()) finished_on_device(operation);
  }

  /// The latest collective of a stream lane that is not launched.
  Operation* last_collective() const { return last_collective_; }
  /// Messages of stream lanes that are not launched, and collectives that launch in phases and have some left.
  const std::vector<Operation*>& launching() const { return launching_; }

  /// Whether any pending operation still needs the host, for CUDA calls too. One that is in its stream does not.
  bool any_needs_host() const { return needing_host_ > 0; }
  /// The same for all operations but the awaited one, or the members of that batch.
  bool others_need_host(const Operation& waited) const;

 private:
  void add_on_device(Operation& operation);
  void finished_on_device(Operation& operation);
  Operation* last_collective_ = nullptr;
  std::vector<Operation*> launching_;
  int needing_host_ = 0;
};

}  // namespace medley::core

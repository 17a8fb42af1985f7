// Deferred destruction of communicators. Destroying one frees memory, for which CUDA waits until every kernel of the
// device has ended, with its locks held: a kernel that waits for a peer that waits for this rank would never end. So
// they are kept until this process has no launches in flight.
#pragma once

#include <memory>

#include "backends/nccl/communicator.hpp"

namespace medley::nccl {

/// Destroys it now, and the other deferred ones, if nothing is in flight (Track::under_way()).
void retire(std::unique_ptr<Communicator> communicator, int device);
/// Destroys all deferred ones, if nothing is in flight. Kernels must not be launched meanwhile.
void take_down_retired();

/// One per lane: the last one destroys all deferred communicators, whatever is in flight.
class LaneCount {
 public:
  LaneCount();
  ~LaneCount();
  LaneCount(const LaneCount&) = delete;
  LaneCount& operator=(const LaneCount&) = delete;
};

}  // namespace medley::nccl

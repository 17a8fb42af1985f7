// Communicators that nobody uses any more. Taking one down frees memory, for which CUDA waits until every kernel of the
// device has ended, with its locks held: a kernel that waits for a peer that waits for this rank would never end. So they
// stay until none of this process is under way.
#pragma once

#include <memory>

#include "backends/nccl/communicator.hpp"

namespace medley::nccl {

/// Takes it down now, and the others that wait for it, if nothing is under way (Track::under_way()).
void retire(std::unique_ptr<Communicator> communicator, int device);
/// Takes down all that were retired, if nothing is under way. Kernels must not be launched meanwhile.
void take_down_retired();

/// One for each lane: with the last one all that were retired go, whatever is under way.
class LaneCount {
 public:
  LaneCount();
  ~LaneCount();
  LaneCount(const LaneCount&) = delete;
  LaneCount& operator=(const LaneCount&) = delete;
};

}  // namespace medley::nccl

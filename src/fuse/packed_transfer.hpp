// A fused collective over a lane that takes no lists: its tensors are packed into a pooled buffer when it starts, one
// operation moves the buffer, and the results are unpacked when it completes. The engine starts these.
#pragma once

#include <medley/backend.hpp>
#include <memory>

#include "fuse/fusion.hpp"

namespace medley::fuse {

/// On host memory. Null if it is complete already. `call` has no memory of its own; `fusion` outlives the transfer
/// through its shared reference, as the packed buffer does while a library may use it.
MEDLEY_API Transfer* start_packed(Lane& lane, const Call& call, std::shared_ptr<Fusion> fusion, int rank, int ranks);

}  // namespace medley::fuse

// The tensors of a list that do not share a message: one operation of the engine starts them on its lane, one after the
// other. The engine starts these.
#pragma once

#include <medley/backend.hpp>
#include <memory>

#include "fuse/fusion.hpp"

namespace medley::fuse {

/// On host memory. Null if all are complete already. `call` has no memory of its own, and `most_started` of its tensors
/// may be under way at once. The lane starts other collectives only when all tensors are started (Transfer::launched).
MEDLEY_API Transfer* start_series(Lane& lane, const Call& call, std::shared_ptr<Fusion> fusion, int ranks,
                                  std::size_t most_started);

}  // namespace medley::fuse

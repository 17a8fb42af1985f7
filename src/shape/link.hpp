// What tensor and pipeline parallelism wait for between the GPUs of one host: an α–β model on the GPU's own
// link. Used by the advisor's step; `medley plan` has machines with hosts and measured routes.
#pragma once

#include <medley/types.hpp>

#include "shape/gpu.hpp"

namespace medley::shape {

/// One operation on a full tensor of `bytes` among `ranks` GPUs of a host; 0 for a single rank.
double link_us(const Gpu& gpu, Op op, double bytes, int ranks);

}  // namespace medley::shape

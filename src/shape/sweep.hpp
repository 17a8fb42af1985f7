// The matrix products a calibration measures when no list is given: every size class, layout and alignment.
// Used by `medley shape bench`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/gemm.hpp"
#include "shape/words.hpp"

namespace medley::shape {

/// `count` products, the same for the same seed, in an order that leaves any prefix representative.
std::vector<Gemm> calibration_gemms(std::size_t count, std::uint64_t seed = 1);

}  // namespace medley::shape

// The default list of matrix products that a calibration measures: every size class, layout and alignment.
// Used by `medley shape bench`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cost/gemm.hpp"
#include "shape/words.hpp"

namespace medley::shape {

/// `count` products, determined by the seed, in an order in which every prefix is representative.
std::vector<Gemm> calibration_gemms(std::size_t count, std::uint64_t seed = 1);

}  // namespace medley::shape

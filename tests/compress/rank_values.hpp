// The values of each rank in tests of compressed collectives, and the error that one encoding of them may have.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "compress/tensors.hpp"

namespace medley::compress::test {

inline constexpr std::int64_t count = 40001;  // several chunks for each owner, and parts of different sizes

inline std::vector<float> values_of(int rank, std::int64_t n = count, std::uint64_t what = 0) {
  core::Random random(100 * what + static_cast<std::uint64_t>(rank) + 1);
  std::vector<float> values = make_values(Values::random, n, random);
  if (what == 7) std::fill(values.begin(), values.end(), std::round(values[0]));  // compressible
  return values;
}

/// The largest error that one encoding of values in [-10, 10] may have.
inline double largest_error(const Codec& codec) {
  const auto bound = codec.bound(DType::f32);
  return bound ? bound->at(10, 10) : 0;
}

}  // namespace medley::compress::test

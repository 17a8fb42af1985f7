// What a codec promises before it has seen the data: how far a decoded value may be from the original.
#pragma once

#include <cmath>
#include <medley/export.hpp>
#include <medley/types.hpp>
#include <optional>

#include "compress/spec.hpp"

namespace medley::compress {

/// |decoded - x| <= relative * |x| + of_block * (largest |value| of x's block) + absolute, for finite blocks.
struct ErrorBound {
  double relative = 0;
  double of_block = 0;
  double absolute = 0;
  int block = 1;                  ///< values that share a scale, counted from the start of a part
  bool depends_on_scale = false;  ///< the absolute term is the user's tolerance: nothing relative follows from it

  double at(double x, double block_maximum) const {
    return relative * std::abs(x) + of_block * block_maximum + absolute;
  }
  /// The largest error, as a fraction of the block's largest value.
  double of_maximum() const { return relative + of_block; }
};

/// The bound for elements of this type, rounding to it included. Lossless codecs: all zero. None for zfp_rate and
/// top_k, whose error depends on the data.
MEDLEY_API std::optional<ErrorBound> bound_of(const Spec& spec, DType dtype);

/// Blocks whose largest value is below this decode to zeros: their scale would be subnormal.
inline constexpr float least_block_maximum = 0x1p-100f;

}  // namespace medley::compress

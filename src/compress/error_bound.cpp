#include "compress/error_bound.hpp"

#include "compress/blocks.hpp"

namespace medley::compress {
namespace {

// The scale, its inverse and two products are rounded to f32: a few units of 2^-24, far below this.
constexpr double rounding = 1 + 0x1p-18;

ErrorBound of_codec(const Spec& spec) {
  const double floor = least_block_maximum;
  switch (spec.kind) {
    // Half a unit in the last place is 2^-9; values above the largest bf16 saturate, which costs up to 2^-8.
    case Kind::bf16: return {.relative = 0x1p-8, .absolute = 0x1p-133};
    // Three bits of mantissa; below 2^-6 the step is 2^-9, in units of the scale, which is the maximum divided by 448.
    case Kind::fp8_e4m3:
      return {
          .relative = 0x1p-4 * rounding, .of_block = 0x1p-10 / 448 * rounding, .absolute = floor, .block = byte_block};
    // Two bits of mantissa; below 2^-14 the step is 2^-16, and the scale is the maximum divided by 57344.
    case Kind::fp8_e5m2:
      return {.relative = 0x1p-3 * rounding,
              .of_block = 0x1p-17 / 57344 * rounding,
              .absolute = floor,
              .block = byte_block};
    case Kind::int8: return {.of_block = 0.5 / 127 * rounding, .absolute = floor, .block = byte_block};
    case Kind::int4: return {.of_block = 0.5 / 7 * rounding, .absolute = floor, .block = nibble_block};
    case Kind::zfp_accuracy: return {.absolute = spec.parameter, .depends_on_scale = true};
    default: return {};
  }
}

}  // namespace

std::optional<ErrorBound> bound_of(const Spec& spec, DType dtype) {
  if (spec.kind == Kind::zfp_rate || spec.kind == Kind::top_k) return std::nullopt;
  ErrorBound bound = of_codec(spec);
  if (!spec.lossy()) return bound;
  // The decoded f32 is rounded to the element type; what it is rounded from may be larger than x by the codec's own
  // error.
  if (dtype == DType::f16) {
    const double step = 0x1p-11;
    bound = {bound.relative + step * (1 + bound.relative), bound.of_block * (1 + step),
             bound.absolute * (1 + step) + 0x1p-25, bound.block, bound.depends_on_scale};
  } else if (dtype == DType::bf16 && spec.kind != Kind::bf16) {
    const double step = 0x1p-8;
    bound = {bound.relative + step * (1 + bound.relative), bound.of_block * (1 + step),
             bound.absolute * (1 + step) + 0x1p-134, bound.block, bound.depends_on_scale};
  }
  return bound;
}

}  // namespace medley::compress

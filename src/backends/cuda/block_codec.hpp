// One value of the codecs bf16, fp8, int8 and int4, and the scale of a block: the arithmetic of
// src/compress/block_kernels.cpp, bit for bit. For the device's kernels; the host compiles it too, so that tests can
// compare it with the host's codecs on machines without a GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <medley/types.hpp>

#ifdef __CUDACC__
#define MEDLEY_DEVICE __host__ __device__ __forceinline__
#else
#define MEDLEY_DEVICE inline
#endif

namespace medley::cuda {

inline constexpr int chunk_values = 16384;  // of src/compress/codec.hpp
inline constexpr std::uint32_t infinity_bits = 0x7F800000u, nan_bits = 0x7FC00000u;

MEDLEY_DEVICE std::uint32_t bits_of(float value) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(value);
#else
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}
MEDLEY_DEVICE float float_of(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
#endif
}
// Every operation rounds by itself: the compiler must not contract them to fused ones, which the host's kernels do not
// use.
MEDLEY_DEVICE float add(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(a, b);
#else
  return a + b;
#endif
}
MEDLEY_DEVICE float multiply(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}
MEDLEY_DEVICE float divide(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fdiv_rn(a, b);
#else
  return a / b;
#endif
}
MEDLEY_DEVICE int nearest(float value) {
#ifdef __CUDA_ARCH__
  return __float2int_rn(value);
#else
  return static_cast<int>(std::lrint(value));
#endif
}
MEDLEY_DEVICE std::uint32_t magnitude(float value) { return bits_of(value) & 0x7FFFFFFFu; }
MEDLEY_DEVICE bool finite(float value) { return magnitude(value) < infinity_bits; }

struct Bf16 {
  static constexpr bool scaled = false, nibbles = false;
  static constexpr int block = 256;  // a tile of the kernels; it has no scale
  static constexpr float top = 1;
  static MEDLEY_DEVICE std::uint32_t code(float value) {
    const std::uint32_t size = magnitude(value), sign = (bits_of(value) >> 16) & 0x8000u;
    if (size > infinity_bits) return 0x7FC0u | sign;
    if (size == infinity_bits) return 0x7F80u | sign;
    const std::uint32_t rounded = (size + 0x7FFFu + ((size >> 16) & 1u)) >> 16;
    return (rounded < 0x7F7Fu ? rounded : 0x7F7Fu) | sign;  // finite values saturate
  }
  static MEDLEY_DEVICE float value(std::uint32_t code) { return float_of(code << 16); }
};

struct Int8 {
  static constexpr bool scaled = true, nibbles = false;
  static constexpr int block = 256;
  static constexpr float top = 127;
  static MEDLEY_DEVICE std::uint32_t code(float value) { return static_cast<std::uint32_t>(nearest(value)) & 0xFFu; }
  static MEDLEY_DEVICE float value(std::uint32_t code) { return static_cast<float>(static_cast<std::int8_t>(code)); }
};

struct Int4 {
  static constexpr bool scaled = true, nibbles = true;
  static constexpr int block = 64;
  static constexpr float top = 7;
  static MEDLEY_DEVICE std::uint32_t code(float value) { return static_cast<std::uint32_t>(nearest(value) + 8); }
  static MEDLEY_DEVICE float value(std::uint32_t code) { return static_cast<float>(static_cast<int>(code) - 8); }
};

template <int mantissa, int bias>
struct Float8 {
  static constexpr bool scaled = true, nibbles = false;
  static constexpr int block = 256;
  static constexpr float top = mantissa == 3 ? 448 : 57344;
  static constexpr int dropped = 23 - mantissa;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - bias) << 23;
  static constexpr std::uint32_t least_normal = static_cast<std::uint32_t>(128 - bias) << 23;
  static constexpr std::uint32_t coarse = static_cast<std::uint32_t>(151 - bias - mantissa) << 23;
  static MEDLEY_DEVICE std::uint32_t code(float value) {
    const std::uint32_t sign = (bits_of(value) >> 24) & 0x80u;
    const float size = float_of(magnitude(value)), capped = size < top ? size : top;
    const std::uint32_t bits = bits_of(capped);
    if (bits < least_normal) return (bits_of(add(capped, float_of(coarse))) - coarse) | sign;
    return ((bits + ((1u << (dropped - 1)) - 1u) - rebias + ((bits >> dropped) & 1u)) >> dropped) | sign;
  }
  static MEDLEY_DEVICE float value(std::uint32_t code) {
    const std::uint32_t placed = (code & 0x7Fu) << dropped;
    const float size =
        placed < (1u << 23) ? add(float_of(placed + least_normal), -float_of(least_normal)) : float_of(placed + rebias);
    return float_of(bits_of(size) | ((code & 0x80u) << 24));
  }
};
using E4m3 = Float8<3, 7>;
using E5m2 = Float8<2, 15>;

/// How a block is encoded, from the bits of its largest magnitude.
struct Scale {
  float inverse = 0, scale = 0;
  bool zeros = false;  ///< a non-finite or a tiny block: all codes are zero bytes and the scale decides
};
template <class Format>
MEDLEY_DEVICE Scale scale_of(std::uint32_t largest) {
  constexpr std::uint32_t least_block_maximum = (127u - 100u) << 23;  // 2^-100, of src/compress/error_bound.hpp
  if (largest >= infinity_bits) return {0, float_of(nan_bits), true};
  if (largest < least_block_maximum) return {0, 0, true};
  const float maximum = float_of(largest), scale = divide(maximum, Format::top);
  const bool overflows = !finite(multiply(scale, Format::top));
  return {divide(Format::top, maximum), overflows ? float_of(bits_of(scale) - 1) : scale, false};
}
template <class Format>
MEDLEY_DEVICE std::uint32_t code_of(float value, const Scale& scale) {
  if constexpr (!Format::scaled) return Format::code(value);
  return scale.zeros ? 0 : Format::code(multiply(value, scale.inverse));
}
template <class Format>
MEDLEY_DEVICE float value_of(std::uint32_t code, float scale) {
  if constexpr (!Format::scaled) return Format::value(code);
  return finite(scale) ? multiply(Format::value(code), scale) : float_of(nan_bits);
}

/// Error feedback: what is encoded, and what is left of it.
MEDLEY_DEVICE float with_residual(float value, float residual) {
  return magnitude(value) > infinity_bits ? value : add(value, residual);
}
MEDLEY_DEVICE float lost(float value, float decoded) {
  const float left = add(value, -decoded);
  return finite(left) ? left : 0;
}

struct Single {
  using Stored = float;
  static MEDLEY_DEVICE float widen(float value) { return value; }
  static MEDLEY_DEVICE float narrow(float value) { return value; }
  static MEDLEY_DEVICE float saturate(float value) { return value; }
};
struct Half {
  using Stored = std::uint16_t;
  static MEDLEY_DEVICE float widen(std::uint16_t half) {
    const std::uint32_t size = half & 0x7FFFu, sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    if (size < 0x400u) return float_of(bits_of(multiply(static_cast<float>(size), 0x1p-24f)) | sign);
    return float_of(((size << 13) + (size >= 0x7C00u ? 224u << 23 : 112u << 23)) | sign);
  }
  static MEDLEY_DEVICE std::uint16_t narrow(float value) {
    const std::uint32_t bits = magnitude(value), sign = (bits_of(value) >> 16) & 0x8000u;
    if (bits > infinity_bits) return 0x7E00u;
    std::uint32_t half = bits < (113u << 23) ? bits_of(add(float_of(bits), 0.5f)) - bits_of(0.5f)
                                             : (bits + 0xFFFu - (112u << 23) + ((bits >> 13) & 1u)) >> 13;
    if (bits > 0x477FFFFFu) half = 0x7C00u;  // 65536 and beyond
    return static_cast<std::uint16_t>(half | sign);
  }
  /// What decodes to a little more than the largest f16 was at most that.
  static MEDLEY_DEVICE float saturate(float value) {
    if (!finite(value) || magnitude(value) <= bits_of(65504.0f)) return value;
    return float_of(bits_of(65504.0f) | (bits_of(value) & 0x80000000u));
  }
};
struct Brain {
  using Stored = std::uint16_t;
  static MEDLEY_DEVICE float widen(std::uint16_t half) { return float_of(static_cast<std::uint32_t>(half) << 16); }
  static MEDLEY_DEVICE std::uint16_t narrow(float value) {
    const std::uint32_t bits = bits_of(value);
    if (magnitude(value) > infinity_bits) return static_cast<std::uint16_t>(nan_bits >> 16);
    return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
  }
  static MEDLEY_DEVICE float saturate(float value) { return value; }
};

/// One step of a reduction in f32, as medley/sdk/reduce.hpp says.
MEDLEY_DEVICE float combined(float a, float b, ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return multiply(a, b);
    case ReduceOp::min: return a < b ? a : b < a ? b : float_of(bits_of(a) | bits_of(b));
    case ReduceOp::max:
      return a > b                          ? a
             : b > a                        ? b
             : magnitude(a) > infinity_bits ? a
             : magnitude(b) > infinity_bits ? b
                                            : float_of(bits_of(a) & bits_of(b));
    default: return add(a, b);
  }
}
MEDLEY_DEVICE float finished(float value, ReduceOp op, int ranks) {
  if (op == ReduceOp::avg) value = divide(value, static_cast<float>(ranks));
  return magnitude(value) > infinity_bits ? float_of(nan_bits) : value;
}

/// Where the blocks of a frame are: chunks of 16,384 values, each with its scales first, then its codes.
template <class Format>
struct Layout {
  std::int64_t count;
  static constexpr int block_bytes = Format::nibbles  ? Format::block / 2
                                     : Format::scaled ? Format::block
                                                      : 2 * Format::block;
  static constexpr int scale_bytes = Format::scaled ? 4 : 0;
  static constexpr std::int64_t chunk_bytes = std::int64_t{chunk_values / Format::block} * (scale_bytes + block_bytes);
  /// Values of the chunk that has this value.
  MEDLEY_DEVICE std::int64_t in_chunk(std::int64_t at) const {
    const std::int64_t left = count - at / chunk_values * chunk_values;
    return left < chunk_values ? left : chunk_values;
  }
  /// The bytes before the scale, and before the codes, of the block that begins at this value.
  MEDLEY_DEVICE std::int64_t scale_at(std::int64_t at) const {
    return at / chunk_values * chunk_bytes + at % chunk_values / Format::block * scale_bytes;
  }
  MEDLEY_DEVICE std::int64_t codes_at(std::int64_t at) const {
    const std::int64_t blocks = (in_chunk(at) + Format::block - 1) / Format::block;
    return at / chunk_values * chunk_bytes + blocks * scale_bytes + at % chunk_values / Format::block * block_bytes;
  }
};

}  // namespace medley::cuda

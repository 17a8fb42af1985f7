// One scale per block: the block's largest magnitude is mapped to the largest code. Compiled for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compress/block_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "compress/blocks.hpp"
#include "compress/error_bound.hpp"
#include "reduce/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace medley::compress {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using medley::HWY_NAMESPACE::load_bits;
using medley::HWY_NAMESPACE::store;

using D = hn::CappedTag<float, 32>;  // half a block of int4 is the shortest run of codes
using I = hn::RebindToSigned<D>;
using U = hn::RebindToUnsigned<D>;
using F = hn::Vec<D>;

/// The bits of the largest magnitude; those of a NaN are larger than any number's.
template <int block>
HWY_INLINE std::uint32_t largest_bits(const float* values) {
  const I i;
  const std::size_t n = hn::Lanes(i);
  const auto mask = hn::Set(i, 0x7FFFFFFF);
  auto a = hn::Zero(i), b = hn::Zero(i);
  const auto bits = [&](std::size_t at) { return hn::And(hn::BitCast(i, load_bits(D(), values + at)), mask); };
  std::size_t at = 0;
  for (; at + 2 * n <= block; at += 2 * n) {
    a = hn::Max(a, bits(at));
    b = hn::Max(b, bits(at + n));
  }
  for (; at < block; at += n) a = hn::Max(a, bits(at));
  return static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(i, hn::Max(a, b))));
}

struct Int8 {
  static constexpr int block = byte_block, bytes = byte_block;
  static constexpr float top = 127;
  static HWY_INLINE void encode(const float* values, float inverse, std::uint8_t* out) {
    const D d;
    const hn::Rebind<std::int8_t, D> d8;
    const auto factor = hn::Set(d, inverse);
    for (std::size_t at = 0; at < block; at += hn::Lanes(d)) {
      const auto code = hn::DemoteTo(d8, hn::NearestInt(hn::Mul(load_bits(d, values + at), factor)));
      store(d8, code, reinterpret_cast<std::int8_t*>(out + at));
    }
  }
  static HWY_INLINE void decode(const std::uint8_t* in, float scale, float* values) {
    const D d;
    const I i;
    const hn::Rebind<std::int8_t, D> d8;
    const auto factor = hn::Set(d, scale);
    for (std::size_t at = 0; at < block; at += hn::Lanes(d)) {
      const auto code = hn::PromoteTo(i, load_bits(d8, reinterpret_cast<const std::int8_t*>(in + at)));
      store(d, hn::Mul(hn::ConvertTo(d, code), factor), values + at);
    }
  }
};

/// Byte j holds value j in its low half and value j + 32 in its high half, both plus 8.
struct Int4 {
  static constexpr int block = nibble_block, bytes = nibble_block / 2;
  static constexpr int half = block / 2;
  static constexpr float top = 7;
  static HWY_INLINE void encode(const float* values, float inverse, std::uint8_t* out) {
    const D d;
    const I i;
    const hn::Rebind<std::uint8_t, D> d8;
    const auto factor = hn::Set(d, inverse);
    const auto code = [&](int at) {
      return hn::Add(hn::NearestInt(hn::Mul(load_bits(d, values + at), factor)), hn::Set(i, 8));
    };
    for (int at = 0; at < half; at += static_cast<int>(hn::Lanes(d))) {
      store(d8, hn::DemoteTo(d8, hn::Or(code(at), hn::ShiftLeft<4>(code(at + half)))), out + at);
    }
  }
  static HWY_INLINE void decode(const std::uint8_t* in, float scale, float* values) {
    const D d;
    const I i;
    const hn::Rebind<std::uint8_t, D> d8;
    const auto factor = hn::Set(d, scale);
    const auto eight = hn::Set(i, 8);
    for (int at = 0; at < half; at += static_cast<int>(hn::Lanes(d))) {
      const auto both = hn::PromoteTo(i, load_bits(d8, in + at));
      store(d, hn::Mul(hn::ConvertTo(d, hn::Sub(hn::And(both, hn::Set(i, 15)), eight)), factor), values + at);
      store(d, hn::Mul(hn::ConvertTo(d, hn::Sub(hn::ShiftRight<4>(both), eight)), factor), values + at + half);
    }
  }
};

/// 8-bit floats with `mantissa` bits of mantissa and the exponent bias `bias`, as the OCP standard has them. No code is
/// infinite.
template <int mantissa, int bias>
struct Float8 {
  static constexpr int block = byte_block, bytes = byte_block;
  static constexpr float top = mantissa == 3 ? 448 : 57344;
  static constexpr int dropped = 23 - mantissa;
  static constexpr int rebias = (127 - bias) << 23;
  static constexpr int least_normal = (128 - bias) << 23;  ///< the bits of 2^(1 - bias)
  /// Of a float whose last bit is worth one subnormal step
  static constexpr int coarse = (151 - bias - mantissa) << 23;

  static HWY_INLINE void encode(const float* values, float inverse, std::uint8_t* out) {
    const D d;
    const I i;
    const hn::Rebind<std::uint8_t, D> d8;
    const auto factor = hn::Set(d, inverse);
    const auto most = hn::Set(d, top);
    const auto step = hn::BitCast(d, hn::Set(i, coarse));
    for (std::size_t at = 0; at < block; at += hn::Lanes(d)) {
      const auto scaled = hn::Mul(load_bits(d, values + at), factor);
      const auto magnitude = hn::Min(hn::Abs(scaled), most);
      const auto sign = hn::And(hn::ShiftRight<24>(hn::BitCast(i, scaled)), hn::Set(i, 0x80));
      const auto bits = hn::BitCast(i, magnitude);
      const auto odd = hn::And(hn::ShiftRight<dropped>(bits), hn::Set(i, 1));  // a tie goes to the even neighbour
      const auto rounded = hn::Add(hn::Add(bits, hn::Set(i, (1 << (dropped - 1)) - 1 - rebias)), odd);
      // Subnormal codes: the addition rounds to a multiple of the step, which the last bits of the sum count.
      const auto subnormal = hn::Sub(hn::BitCast(i, hn::Add(magnitude, step)), hn::BitCast(i, step));
      const auto code =
          hn::IfThenElse(hn::Lt(bits, hn::Set(i, least_normal)), subnormal, hn::ShiftRight<dropped>(rounded));
      store(d8, hn::DemoteTo(d8, hn::Or(code, sign)), out + at);
    }
  }
  static HWY_INLINE void decode(const std::uint8_t* in, float scale, float* values) {
    const D d;
    const I i;
    const hn::Rebind<std::uint8_t, D> d8;
    const auto factor = hn::Set(d, scale);
    const auto least = hn::BitCast(d, hn::Set(i, least_normal));
    for (std::size_t at = 0; at < block; at += hn::Lanes(d)) {
      const auto code = hn::PromoteTo(i, load_bits(d8, in + at));
      const auto sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(i, 0x80)));
      const auto placed = hn::ShiftLeft<dropped>(hn::And(code, hn::Set(i, 0x7F)));
      const auto normal = hn::BitCast(d, hn::Add(placed, hn::Set(i, rebias)));
      // A subnormal is (2^(1 - bias) + its value) - 2^(1 - bias), exactly, also where the CPU flushes subnormal inputs.
      const auto subnormal = hn::Sub(hn::BitCast(d, hn::Add(placed, hn::Set(i, least_normal))), least);
      const auto magnitude = hn::IfThenElse(hn::RebindMask(d, hn::Lt(placed, hn::Set(i, 1 << 23))), subnormal, normal);
      store(d, hn::Mul(hn::BitCast(d, hn::Or(hn::BitCast(i, magnitude), sign)), factor), values + at);
    }
  }
};

template <class Format>
float encode_block(const float* values, std::uint8_t* out) {
  const std::uint32_t bits = largest_bits<Format::block>(values);
  float maximum;
  std::memcpy(&maximum, &bits, sizeof maximum);
  if (!(maximum <= std::numeric_limits<float>::max()) || maximum < least_block_maximum) {  // not finite, or tiny
    std::memset(out, 0, Format::bytes);  // any code would do: the scale decides
    return bits >= 0x7F800000u ? std::numeric_limits<float>::quiet_NaN() : 0;
  }
  Format::encode(values, Format::top / maximum, out);
  const float scale = maximum / Format::top;
  // The largest code must not decode to infinity.
  return std::isinf(scale * Format::top) ? std::nextafter(scale, 0.0f) : scale;
}

template <class Format>
void decode_block(const std::uint8_t* in, float scale, float* values) {
  if (!std::isfinite(scale)) {
    const D d;
    const auto nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    for (std::size_t at = 0; at < Format::block; at += hn::Lanes(d)) store(d, nan, values + at);
    return;
  }
  Format::decode(in, scale, values);
}

template <class Format>
BlockKernels kernels_of() {
  return {encode_block<Format>, decode_block<Format>};
}

BlockKernels kernels_for(BlockFormat format) {
  switch (format) {
    case BlockFormat::int8: return kernels_of<Int8>();
    case BlockFormat::int4: return kernels_of<Int4>();
    case BlockFormat::e4m3: return kernels_of<Float8<3, 7>>();
    default: return kernels_of<Float8<2, 15>>();
  }
}

void narrow_to_bf16(std::uint16_t* to, const float* from, std::size_t count) {
  const D d;
  const I i;
  const hn::Rebind<std::uint16_t, D> d16;
  const std::size_t n = hn::Lanes(d);
  const auto narrow = [&](F value) {
    const auto bits = hn::BitCast(i, value);
    const auto magnitude = hn::And(bits, hn::Set(i, 0x7FFFFFFF));
    const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(U(), value)), hn::Set(U(), 0x8000u));
    const auto odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(i, 1));
    auto half = hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, hn::Set(i, 0x7FFF)), odd));
    // Finite values saturate
    half = hn::Min(half, hn::Set(i, 0x7F7F));
    half = hn::IfThenElse(hn::Eq(magnitude, hn::Set(i, 0x7F800000)), hn::Set(i, 0x7F80), half);  // infinity
    half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(i, 0x7F800000)), hn::Set(i, 0x7FC0), half);  // NaN
    return hn::DemoteTo(d16, hn::Or(half, hn::BitCast(i, sign)));
  };
  std::size_t at = 0;
  for (; at + n <= count; at += n) store(d16, narrow(load_bits(d, from + at)), to + at);
  if (at == count) return;
  HWY_ALIGN float tail[32] = {};
  HWY_ALIGN std::uint16_t half[32];
  std::memcpy(tail, from + at, (count - at) * sizeof *from);
  store(d16, narrow(load_bits(d, tail)), half);
  std::memcpy(to + at, half, (count - at) * sizeof *to);
}

}  // namespace HWY_NAMESPACE
}  // namespace medley::compress
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley::compress {

HWY_EXPORT(kernels_for);
HWY_EXPORT(narrow_to_bf16);

BlockKernels block_kernels(BlockFormat format) { return HWY_DYNAMIC_DISPATCH(kernels_for)(format); }

void narrow_bf16(std::uint16_t* to, const float* from, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_to_bf16)(to, from, count);
}

}  // namespace medley::compress
#endif

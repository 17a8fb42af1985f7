// Tensors for tests of codecs: the kinds of values that break them, in every type that they take.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <medley/types.hpp>
#include <vector>

#include "base/random.hpp"
#include "compress/codec.hpp"
#include "compress/frame.hpp"

namespace medley::compress::test {

inline const std::vector<const char*>& all_codecs() {
  static const std::vector<const char*> all{"bf16", "fp8_e4m3",   "fp8_e5m2",           "int8",      "int4", "lz4",
                                            "zstd", "zfp_rate:8", "zfp_accuracy:0.001", "top_k:0.01"};
  return all;
}

/// The codecs that this build has.
inline std::vector<const Codec*> usable_codecs() {
  std::vector<const Codec*> usable;
  for (const char* text : all_codecs()) {
    const Spec spec = parse_spec(text);
    if (why_unavailable(spec.kind).empty()) usable.push_back(&codec(spec));
  }
  return usable;
}

enum class Values { random, constant, zeros, subnormal, huge, mixed, smooth };
inline constexpr int value_kinds = 7;

inline float uniform(core::Random& random) {
  return static_cast<float>(random.bits() >> 40) * 0x1p-23f - 1;  // in [-1, 1)
}

inline std::vector<float> make_values(Values kind, std::int64_t count, core::Random& random) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const float constant = uniform(random) * 1e3f;
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (kind) {
      case Values::random: values[i] = uniform(random) * 10; break;
      case Values::constant: values[i] = constant; break;
      case Values::zeros: values[i] = 0; break;
      case Values::subnormal: values[i] = uniform(random) * 1e-40f; break;
      case Values::huge: values[i] = uniform(random) * std::numeric_limits<float>::max(); break;
      case Values::mixed: values[i] = uniform(random) * std::exp2(static_cast<float>(random.bits() % 200) - 100); break;
      case Values::smooth: values[i] = std::sin(static_cast<float>(i) * 0.01f); break;
    }
  }
  return values;
}

/// The nearest value of the type, as f32, by its own arithmetic.
inline float as_element(float value, DType dtype) {
  if (dtype == DType::f32 || !std::isfinite(value)) return value;
  if (dtype == DType::bf16) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t cut = bits & 0xFFFF0000u;  // toward zero: any bf16 will do as an input
    return std::bit_cast<float>(cut);
  }
  if (std::abs(value) > 65504) return std::copysign(65504.0f, value);
  if (value == 0) return value;
  const float step = std::exp2(static_cast<float>(std::max(std::ilogb(value), -14) - 10));
  return std::trunc(value / step) * step;
}

/// Exact: the value is one of the type.
inline void put(std::vector<std::byte>& to, std::size_t i, float value, DType dtype) {
  if (dtype == DType::f32) {
    std::memcpy(to.data() + 4 * i, &value, 4);
    return;
  }
  std::uint16_t half = 0;
  if (dtype == DType::bf16) {
    half = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    if (std::isnan(value)) half |= 0x40;
  } else {
    half = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    const float size = std::abs(value);
    if (std::isnan(value)) half |= 0x7E00;
    else if (std::isinf(value)) half |= 0x7C00;
    else if (size < 0x1p-14f) half |= static_cast<std::uint16_t>(size * 0x1p24f);
    else {
      const int exponent = std::ilogb(size);
      half |= static_cast<std::uint16_t>(((exponent + 15) << 10) |
                                         static_cast<int>((std::ldexp(size, -exponent) - 1) * 1024));
    }
  }
  std::memcpy(to.data() + 2 * i, &half, 2);
}

inline float get(const std::vector<std::byte>& from, std::size_t i, DType dtype) {
  float value = 0;
  std::uint16_t half = 0;
  if (dtype == DType::f32) {
    std::memcpy(&value, from.data() + 4 * i, 4);
    return value;
  }
  std::memcpy(&half, from.data() + 2 * i, 2);
  if (dtype == DType::bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
  const int exponent = (half >> 10) & 31, mantissa = half & 1023;
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31)
    return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -24)
                               : std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25));
}

inline std::vector<std::byte> pack(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) put(bytes, i, as_element(values[i], dtype), dtype);
  return bytes;
}

inline std::vector<std::byte> encode(const Codec& codec, DType dtype, const std::vector<std::byte>& elements,
                                     std::vector<float>* residual = nullptr) {
  const auto count = static_cast<std::int64_t>(elements.size() / size_of(dtype));
  std::vector<std::byte> frame(most_frame_bytes(codec, dtype, count));
  FrameWriter writer(codec, dtype, count, frame.data());
  for (std::size_t at = 0; !writer.complete(); at += chunk_values) {
    writer.add(elements.data() + at * size_of(dtype), residual ? residual->data() + at : nullptr);
  }
  frame.resize(writer.finish());
  return frame;
}

inline std::vector<std::byte> decode(const Codec& codec, DType dtype, std::int64_t count,
                                     const std::vector<std::byte>& frame) {
  const FrameReader reader(codec, dtype, count, frame);
  std::vector<std::byte> elements(static_cast<std::size_t>(count) * size_of(dtype));
  for (std::int64_t i = 0; i < reader.chunks(); ++i) {
    reader.read(i, elements.data() + static_cast<std::size_t>(i) * chunk_values * size_of(dtype));
  }
  return elements;
}

}  // namespace medley::compress::test

// Small integers in every element type, for filling buffers and checking them.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <medley/types.hpp>

namespace medley::tune {

/// Exact for the small integers used here: bf16 is the upper half of an f32, f16 is rebuilt from one.
inline std::uint16_t half_bits(double value, DType dtype) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == DType::bf16) return static_cast<std::uint16_t>(bits >> 16);
  if ((bits & 0x7fffffffu) == 0) return static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t exponent = (bits >> 23 & 0xffu) - 127 + 15;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | exponent << 10 | (bits >> 13 & 0x3ffu));
}

/// Calls `use` with a value of the C++ type that stores `dtype`.
template <typename Use>
void with_element(DType dtype, double value, Use use) {
  switch (dtype) {
    case DType::f64: return use(value);
    case DType::f32: return use(static_cast<float>(value));
    case DType::f16:
    case DType::bf16: return use(half_bits(value, dtype));
    case DType::i64: return use(static_cast<std::int64_t>(value));
    case DType::i32: return use(static_cast<std::int32_t>(value));
    case DType::i16: return use(static_cast<std::int16_t>(value));
    case DType::i8: return use(static_cast<std::int8_t>(value));
    case DType::u8: return use(static_cast<std::uint8_t>(value));
    case DType::boolean: return use(static_cast<std::uint8_t>(value != 0));
  }
}

inline void fill(void* data, std::size_t count, DType dtype, double value) {
  with_element(dtype, value, [&]<typename T>(T element) {
    auto* elements = static_cast<T*>(data);
    for (std::size_t i = 0; i < count; ++i) elements[i] = element;
  });
}

/// The first element that differs, or `count`.
inline std::size_t first_other(const void* data, std::size_t count, DType dtype, double value) {
  std::size_t at = count;
  with_element(dtype, value, [&]<typename T>(T element) {
    const auto* elements = static_cast<const T*>(data);
    for (at = 0; at < count && elements[at] == element; ++at) {
    }
  });
  return at;
}

/// The same for results of lossy compression, which may be a few percent off.
inline std::size_t first_far(const void* data, std::size_t count, DType dtype, double value) {
  constexpr double slack = 0.05;
  std::size_t at = count;
  with_element(dtype, value, [&]<typename T>(T element) {
    const auto* elements = static_cast<const T*>(data);
    // 16-bit floats are compared by their bits
    const double step = dtype == DType::f16 ? 1024 : dtype == DType::bf16 ? 128 : value;
    for (at = 0;
         at < count && std::abs(static_cast<double>(elements[at]) - static_cast<double>(element)) <= slack * step;
         ++at) {
    }
  });
  return at;
}

}  // namespace medley::tune

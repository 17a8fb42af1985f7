// The expected result of a reduction, element by element in the simplest C++, and inputs worth
// trying. Used by reduce_test.cpp; shares no code with the kernels under test.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <medley/types.hpp>

namespace medley::reference {

using Bytes = std::vector<std::byte>;

inline float from_f16(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? std::numeric_limits<float>::quiet_NaN() : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

inline std::uint16_t to_f16(float value) {
  if (std::isnan(value)) return 0x7E00;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(static_cast<double>(value));
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7C00);
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(size, 10 - exponent)));  // nearest, ties to even
  return static_cast<std::uint16_t>(sign | (((exponent + 14) << 10) + steps));
}

inline float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

inline std::uint16_t to_bf16(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(static_cast<double>(value));
  if (std::isinf(size)) return static_cast<std::uint16_t>(sign | 0x7F80);
  const int exponent = size < 0x1p-126 ? -126 : std::ilogb(size);
  const int steps = static_cast<int>(std::nearbyint(std::ldexp(size, 7 - exponent)));
  return static_cast<std::uint16_t>(sign | (((exponent + 126) << 7) + steps));  // past the largest: infinity
}

template <class T>
T combine(T a, T b, ReduceOp op) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool nan = std::isnan(a) || std::isnan(b);
    const bool a_first = a < b || (a == b && std::signbit(a));
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg: return a + b;
      case ReduceOp::product: return a * b;
      case ReduceOp::min: return nan ? std::numeric_limits<T>::quiet_NaN() : a_first ? a : b;
      default: return nan ? std::numeric_limits<T>::quiet_NaN() : a_first ? b : a;
    }
  } else {
    const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
    switch (op) {
      case ReduceOp::sum: return static_cast<T>(ua + ub);
      case ReduceOp::product: return static_cast<T>(ua * ub);
      case ReduceOp::min: return a < b ? a : b;
      case ReduceOp::max: return a < b ? b : a;
      case ReduceOp::band: return static_cast<T>(ua & ub);
      case ReduceOp::bor: return static_cast<T>(ua | ub);
      default: return static_cast<T>(ua ^ ub);
    }
  }
}

inline bool combine_bool(bool a, bool b, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor: return a || b;
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band: return a && b;
    default: return a != b;
  }
}

/// One result: `read(k)` is source k's element in the type of the computation.
template <class T, class Read>
T reduce_one(int n, ReduceOp op, int divisor, Read read) {
  T value = read(0);
  for (int k = 1; k < n; ++k) value = combine<T>(value, read(k), op);
  if constexpr (std::is_floating_point_v<T>) {
    if (divisor != 1 && (op == ReduceOp::sum || op == ReduceOp::avg)) value /= static_cast<T>(divisor);
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
  }
  return value;
}

template <class T>
T at(const Bytes& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

/// Element i of the result, written to `out`.
inline void reduce_element(DType dtype, ReduceOp op, const std::vector<Bytes>& srcs, int n, std::size_t i, int divisor,
                           std::byte* out) {
  const auto native = [&]<class T>(T) {
    const T value = reduce_one<T>(n, op, divisor, [&](int k) { return at<T>(srcs[k], i); });
    std::memcpy(out, &value, sizeof value);
  };
  const auto half = [&](float (*from)(std::uint16_t), std::uint16_t (*to)(float)) {
    const auto read = [&](int k) { return from(at<std::uint16_t>(srcs[k], i)); };
    const std::uint16_t bits = to(reduce_one<float>(n, op, divisor, read));
    std::memcpy(out, &bits, sizeof bits);
  };
  if (n == 1 && divisor == 1 && dtype != DType::boolean) {
    std::memcpy(out, srcs[0].data() + i * size_of(dtype), size_of(dtype));
    return;
  }
  switch (dtype) {
    case DType::f64: return native(double{});
    case DType::f32: return native(float{});
    case DType::f16: return half(from_f16, to_f16);
    case DType::bf16: return half(from_bf16, to_bf16);
    case DType::i64: return native(std::int64_t{});
    case DType::i32: return native(std::int32_t{});
    case DType::i16: return native(std::int16_t{});
    case DType::i8: return native(std::int8_t{});
    case DType::u8: return native(std::uint8_t{});
    case DType::boolean: {
      bool value = at<std::uint8_t>(srcs[0], i) != 0;
      for (int k = 1; k < n; ++k) value = combine_bool(value, at<std::uint8_t>(srcs[k], i) != 0, op);
      *out = std::byte{value};
    }
  }
}

inline Bytes reduce(DType dtype, ReduceOp op, const std::vector<Bytes>& srcs, int n, std::size_t count, int divisor) {
  Bytes out(count * size_of(dtype));
  for (std::size_t i = 0; i < count; ++i)
    reduce_element(dtype, op, srcs, n, i, divisor, out.data() + i * size_of(dtype));
  return out;
}

/// The bits of `value` as a float of `dtype`.
inline std::uint64_t float_bits(DType dtype, double value) {
  std::uint64_t wide = 0;
  const float narrow = static_cast<float>(value);
  if (dtype == DType::f64) std::memcpy(&wide, &value, sizeof value);
  if (dtype == DType::f32) std::memcpy(&wide, &narrow, sizeof narrow);
  if (dtype == DType::f16) wide = to_f16(narrow);
  if (dtype == DType::bf16) wide = to_bf16(narrow);
  return wide;
}

/// Elements near one, some random bit patterns (NaNs with payloads, infinities, subnormals), zeros of both
/// signs.
inline Bytes inputs(DType dtype, std::size_t count, std::mt19937_64& random) {
  const std::size_t size = size_of(dtype);
  const bool floating = reducible(dtype, ReduceOp::avg);
  Bytes out(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = random();
    const unsigned dice = static_cast<unsigned>(random() % 64);
    if (dtype == DType::boolean && dice < 48) bits &= 1;
    if (floating && dice == 0) bits = float_bits(dtype, 0.0);
    if (floating && dice == 1) bits = float_bits(dtype, -0.0);
    if (floating && dice > 2) {
      const double sign = bits & 1 ? -1.0 : 1.0;
      bits = float_bits(dtype, sign * (0.5 + std::ldexp(static_cast<double>(bits >> 11), -53)));
    }
    std::memcpy(out.data() + i * size, &bits, size);
  }
  return out;
}

}  // namespace medley::reference

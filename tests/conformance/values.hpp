// The numbers of the conformance suite: the value of element i of a rank's input, and the result of a
// reduction over all ranks. Any rank can compute any other's input, so only the operation under test
// communicates.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <medley/types.hpp>

#include "base/random.hpp"
#include "reduce/reference.hpp"

namespace medley::conformance {

using core::mix;

/// Random bits of element `i` of `rank`, in the case numbered `seed`.
inline std::uint64_t random_bits(std::uint64_t seed, int rank, std::int64_t i) {
  return mix(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xd1342543de82ef95u +
             static_cast<std::uint64_t>(i));
}

/// How a type is stored, what it is computed in, and its unit roundoff. Floats have values of ±[0.5, 2).
template <class T>
struct Integer {
  using Stored = T;
  using Wide = T;
  static constexpr bool floating = false;
  static T from_bits(std::uint64_t bits) { return static_cast<T>(bits); }
  static Wide widen(T value) { return value; }
  static T narrow(Wide value) { return value; }
  static Wide combine(Wide a, Wide b, ReduceOp op) { return reference::combine<T>(a, b, op); }
};

struct Boolean : Integer<std::uint8_t> {
  static std::uint8_t from_bits(std::uint64_t bits) { return bits & 1; }
  static std::uint8_t combine(std::uint8_t a, std::uint8_t b, ReduceOp op) {
    return reference::combine_bool(a != 0, b != 0, op) ? 1 : 0;
  }
};

template <class Bits, class W, int mantissa, int exponent_of_half>
struct Float {
  using Stored = Bits;
  using Wide = W;
  static constexpr bool floating = true;
  static constexpr double unit = 1.0 / (std::uint64_t{2} << mantissa);
  static Bits from_bits(std::uint64_t bits) {
    const Bits fraction = static_cast<Bits>(bits & ((std::uint64_t{1} << mantissa) - 1));
    const Bits exponent = static_cast<Bits>(exponent_of_half + (bits >> 62 & 1)) << mantissa;
    return static_cast<Bits>(static_cast<Bits>(bits >> 63) << (8 * sizeof(Bits) - 1) | exponent | fraction);
  }
  static Wide combine(Wide a, Wide b, ReduceOp op) { return reference::combine<Wide>(a, b, op); }
};

template <class Bits, class W, int mantissa, int exponent_of_half>
struct NativeFloat : Float<Bits, W, mantissa, exponent_of_half> {
  static W widen(Bits bits) {
    W value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static Bits narrow(W value) {
    Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
};
using F64 = NativeFloat<std::uint64_t, double, 52, 1022>;
using F32 = NativeFloat<std::uint32_t, float, 23, 126>;

struct F16 : Float<std::uint16_t, float, 10, 14> {
  static float widen(std::uint16_t bits) { return reference::from_f16(bits); }
  static std::uint16_t narrow(float value) { return reference::to_f16(value); }
};
struct Bf16 : Float<std::uint16_t, float, 7, 126> {
  static float widen(std::uint16_t bits) { return reference::from_bf16(bits); }
  static std::uint16_t narrow(float value) { return reference::to_bf16(value); }
};

/// Calls visit with the type above that represents `dtype`.
template <class Visit>
auto with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f64: return visit(F64{});
    case DType::f32: return visit(F32{});
    case DType::f16: return visit(F16{});
    case DType::bf16: return visit(Bf16{});
    case DType::i64: return visit(Integer<std::int64_t>{});
    case DType::i32: return visit(Integer<std::int32_t>{});
    case DType::i16: return visit(Integer<std::int16_t>{});
    case DType::i8: return visit(Integer<std::int8_t>{});
    case DType::u8: return visit(Integer<std::uint8_t>{});
    case DType::boolean: break;
  }
  return visit(Boolean{});
}

/// Writes elements [at, at + count) of a rank's input.
inline void write_input(std::byte* to, DType dtype, std::uint64_t seed, int rank, std::int64_t at, std::int64_t count) {
  with_type(dtype, [&](auto type) {
    using E = decltype(type);
    for (std::int64_t i = 0; i < count; ++i) {
      const typename E::Stored value = E::from_bits(random_bits(seed, rank, at + i));
      std::memcpy(to + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
    }
  });
}

/// Writes elements [at, at + count) of the reduction over ranks 0 to n-1, combined in that order and rounded
/// once.
inline void write_reduced(std::byte* to, DType dtype, ReduceOp op, std::uint64_t seed, int n, std::int64_t at,
                          std::int64_t count) {
  if (n == 1) return write_input(to, dtype, seed, 0, at, count);
  with_type(dtype, [&](auto type) {
    using E = decltype(type);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto input = [&](int rank) { return E::widen(E::from_bits(random_bits(seed, rank, at + i))); };
      typename E::Wide value = input(0);
      for (int r = 1; r < n; ++r) value = E::combine(value, input(r), op);
      if constexpr (E::floating) {
        if (op == ReduceOp::avg) value /= static_cast<typename E::Wide>(n);
      }
      const typename E::Stored stored = E::narrow(value);
      std::memcpy(to + static_cast<std::size_t>(i) * sizeof stored, &stored, sizeof stored);
    }
  });
}

/// The first element of a float reduction that exceeds the stated bound, or -1. The bound holds for any order
/// and for rounding after every step: n·u·Σ|x| for a sum (divided by n for an average), n·u·|Πx| for a
/// product; u is the type's unit roundoff. min and max are exact. Looks at every `stride`th element.
inline std::int64_t first_beyond_bound(const std::byte* got, DType dtype, ReduceOp op, std::uint64_t seed, int n,
                                       std::int64_t at, std::int64_t count, std::int64_t stride) {
  return with_type(dtype, [&](auto type) -> std::int64_t {
    using E = decltype(type);
    if constexpr (E::floating) {
      for (std::int64_t i = 0; i < count; i += stride) {
        typename E::Stored stored;
        std::memcpy(&stored, got + static_cast<std::size_t>(i) * sizeof stored, sizeof stored);
        long double exact = 0, size = 0;
        for (int r = 0; r < n; ++r) {
          const long double x = E::widen(E::from_bits(random_bits(seed, r, at + i)));
          const bool first = r == 0;
          size = op == ReduceOp::product ? (first ? 1 : size) * std::fabs(x) : size + std::fabs(x);
          if (op == ReduceOp::sum || op == ReduceOp::avg) exact += x;
          if (op == ReduceOp::product) exact = first ? x : exact * x;
          if (op == ReduceOp::min) exact = first ? x : std::fmin(exact, x);
          if (op == ReduceOp::max) exact = first ? x : std::fmax(exact, x);
        }
        long double bound = static_cast<long double>(E::unit) * n * size;
        if (op == ReduceOp::min || op == ReduceOp::max) bound = 0;
        if (op == ReduceOp::avg) exact /= n, bound /= n;
        if (!(std::fabs(static_cast<long double>(E::widen(stored)) - exact) <= bound)) return i;
      }
    }
    return -1;
  });
}

inline bool floating(DType dtype) { return reducible(dtype, ReduceOp::avg); }

}  // namespace medley::conformance

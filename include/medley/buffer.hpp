// Views of the user's memory: where it is, how many elements, of which type. They own nothing.
// Every operation takes them; vectors, arrays and spans of the element types convert implicitly, buffer() makes others.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <type_traits>

#include <medley/types.hpp>

namespace medley {

/// 16-bit floats as raw bits, for programs that have no such type of their own.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};

/// The DType of a C++ type; specialise it for your own half-precision class.
template <typename T>
struct dtype_of;
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<f16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<std::int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct dtype_of<std::byte> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<char> {
  static constexpr DType value = std::is_signed_v<char> ? DType::i8 : DType::u8;
};
template <typename T>
requires(std::same_as<T, long long> && !std::same_as<T, std::int64_t>) struct dtype_of<T> {
  static constexpr DType value = DType::i64;
};

template <typename T>
concept Element = requires {
  dtype_of<std::remove_cv_t<T>>::value;
};

template <typename R>
concept ElementRange =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Element<std::ranges::range_value_t<R>>;

/// Memory that an operation only reads.
struct ConstBuffer {
  const void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::u8;
  Memory memory = Memory::host;
  int device = 0;  ///< the CUDA device, when memory is cuda

  constexpr ConstBuffer() = default;
  constexpr ConstBuffer(const void* where, std::int64_t elements, DType type, Memory kind = Memory::host, int dev = 0)
      : data(where), count(elements), dtype(type), memory(kind), device(dev) {}
  template <ElementRange R>
  constexpr ConstBuffer(const R& range)  // NOLINT: meant to convert
      : data(std::ranges::data(range)),
        count(static_cast<std::int64_t>(std::ranges::size(range))),
        dtype(dtype_of<std::ranges::range_value_t<R>>::value) {}
  constexpr std::int64_t bytes() const { return count * static_cast<std::int64_t>(size_of(dtype)); }
};

/// Memory that an operation writes, or reads and writes. A temporary vector or array does not convert: nobody could read
/// the result.
struct Buffer {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::u8;
  Memory memory = Memory::host;
  int device = 0;

  constexpr Buffer() = default;
  constexpr Buffer(void* where, std::int64_t elements, DType type, Memory kind = Memory::host, int dev = 0)
      : data(where), count(elements), dtype(type), memory(kind), device(dev) {}
  template <ElementRange R>
  requires(std::ranges::borrowed_range<R> &&
           !std::is_const_v<std::remove_reference_t<
               std::ranges::range_reference_t<R>>>) constexpr Buffer(R&& range)  // NOLINT: meant to convert
      : data(std::ranges::data(range)),
        count(static_cast<std::int64_t>(std::ranges::size(range))),
        dtype(dtype_of<std::ranges::range_value_t<R>>::value) {}
  constexpr operator ConstBuffer() const { return {data, count, dtype, memory, device}; }
  constexpr std::int64_t bytes() const { return count * static_cast<std::int64_t>(size_of(dtype)); }
};

/// Host memory behind a pointer.
template <Element T>
constexpr std::conditional_t<std::is_const_v<T>, ConstBuffer, Buffer> buffer(T* values, std::int64_t count) {
  return {values, count, dtype_of<std::remove_const_t<T>>::value};
}
/// One value, such as a loss: world.all_reduce(buffer(loss), avg).
template <Element T>
constexpr auto buffer(T& value) {
  return buffer(&value, 1);
}

}  // namespace medley

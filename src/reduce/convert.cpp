// f16 and bf16 to f32 and back, a vector at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/convert.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

#include "reduce/elements-inl.h"
#include "reduce/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {

template <class Element>
void widen_all(float* to, const std::uint16_t* from, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t n = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + n <= count; i += n) store(d, Element::load(d, from + i), to + i);
  if (i == count) return;
  std::uint16_t tail[HWY_MAX_BYTES / 4] = {};
  HWY_ALIGN float wide[HWY_MAX_BYTES / 4];
  std::memcpy(tail, from + i, (count - i) * sizeof *from);
  store(d, Element::load(d, tail), wide);
  std::memcpy(to + i, wide, (count - i) * sizeof *to);
}

template <class Element>
void narrow_all(std::uint16_t* to, const float* from, std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint16_t, decltype(d)> d16;
  const std::size_t n = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + n <= count; i += n) store(d16, Element::pack(d, load_bits(d, from + i)), to + i);
  if (i == count) return;
  HWY_ALIGN float tail[HWY_MAX_BYTES / 4] = {};
  std::uint16_t half[HWY_MAX_BYTES / 4];
  std::memcpy(tail, from + i, (count - i) * sizeof *from);
  store(d16, Element::pack(d, load_bits(d, tail)), half);
  std::memcpy(to + i, half, (count - i) * sizeof *to);
}

void widen_kernel(float* to, const void* from, DType dtype, std::size_t count) {
  const auto* halves = static_cast<const std::uint16_t*>(from);
  dtype == DType::f16 ? widen_all<Float16>(to, halves, count) : widen_all<BFloat16>(to, halves, count);
}

void narrow_kernel(void* to, const float* from, DType dtype, std::size_t count) {
  auto* halves = static_cast<std::uint16_t*>(to);
  dtype == DType::f16 ? narrow_all<Float16>(halves, from, count) : narrow_all<BFloat16>(halves, from, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace medley {

HWY_EXPORT(widen_kernel);
HWY_EXPORT(narrow_kernel);

void widen_half(float* to, const void* from, DType dtype, std::size_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(widen_kernel)(to, from, dtype, count);
}

void narrow_half(void* to, const float* from, DType dtype, std::size_t count) noexcept {
  HWY_DYNAMIC_DISPATCH(narrow_kernel)(to, from, dtype, count);
}

}  // namespace medley
#endif

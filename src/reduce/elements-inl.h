// Conversion between elements of each type and vector lanes: included once per Highway target.
// Highway 1.0.3 truncates when it converts to bf16, and to f16 before AVX2; the rounding conversions are here.
#if defined(MEDLEY_CORE_REDUCE_ELEMENTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEDLEY_CORE_REDUCE_ELEMENTS_INL_H
#undef MEDLEY_CORE_REDUCE_ELEMENTS_INL_H
#else
#define MEDLEY_CORE_REDUCE_ELEMENTS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Whether vectors of D have one lane, at compile time. SVE's MaxLanes() returns 1 for two narrowed lanes.
template <class D>
inline constexpr bool single_lane = !HWY_HAVE_SCALABLE && hn::MaxLanes(D()) == 1;

/// Loads and stores at any address, even one that is not a multiple of the element's size: with a single lane
/// Highway dereferences the pointer, which C++ allows only when it is aligned.
template <class D>
HWY_INLINE hn::Vec<D> load_bits(D d, const hn::TFromD<D>* from) {
  if constexpr (single_lane<D>) {
    hn::TFromD<D> value;
    std::memcpy(&value, from, sizeof value);
    return hn::Set(d, value);
  } else {
    return hn::LoadU(d, from);
  }
}
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, hn::TFromD<D>* to) {
  if constexpr (single_lane<D>) {
    const hn::TFromD<D> value = hn::GetLane(v);
    std::memcpy(to, &value, sizeof value);
  } else {
    hn::StoreU(v, d, to);
  }
}

/// Two adjacent vectors, loaded and stored one after the other. (Elements provide load and pack for one
/// vector.)
template <class Element, class Stored>
struct Apart {
  template <class D>
  static HWY_INLINE void load_pair(D d, const Stored* from, hn::Vec<D>& a, hn::Vec<D>& b) {
    a = Element::load(d, from);
    b = Element::load(d, from + hn::Lanes(d));
  }
  template <class D>
  static HWY_INLINE void store_pair(D d, hn::Vec<D> a, hn::Vec<D> b, Stored* to, bool stream) {
    const hn::Rebind<Stored, D> out;
    if (stream) {
      hn::Stream(Element::pack(d, a), out, to);
      hn::Stream(Element::pack(d, b), out, to + hn::Lanes(d));
    } else {
      store(out, Element::pack(d, a), to);
      store(out, Element::pack(d, b), to + hn::Lanes(d));
    }
  }
};

/// Types that the vector unit computes in directly.
template <class T>
struct Native : Apart<Native<T>, T> {
  using Stored = T;
  using Lane = T;
  static constexpr bool copies = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) {
    return load_bits(d, from);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> pack(D, hn::Vec<D> v) {
    return v;
  }
};

/// One byte each; a lane is 0 or 1.
struct Bool : Apart<Bool, std::uint8_t> {
  using Stored = std::uint8_t;
  using Lane = std::uint8_t;
  static constexpr bool copies = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from) {
    return hn::Min(load_bits(d, from), hn::Set(d, std::uint8_t{1}));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> pack(D, hn::Vec<D> v) {
    return v;
  }
};

/// The upper half of an f32. A NaN must already be the canonical one: its upper half is a NaN too, and rounding
/// keeps it. A pair of vectors holds the even and the odd elements, which takes shifts and masks instead of
/// shuffles.
struct BFloat16 : Apart<BFloat16, std::uint16_t> {
  using Stored = std::uint16_t;
  using Lane = float;
  static constexpr bool copies = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, load_bits(d16, from))));
  }
  template <class D>
  static HWY_INLINE auto pack(D d, hn::Vec<D> v) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToSigned<D> i32;
    return hn::DemoteTo(d16, hn::BitCast(i32, hn::ShiftRight<16>(rounded(d, v))));
  }
#if HWY_TARGET != HWY_SCALAR
  template <class D>
  static HWY_INLINE void load_pair(D d, const std::uint16_t* from, hn::Vec<D>& even, hn::Vec<D>& odd) {
    const hn::Repartition<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto both = hn::BitCast(d32, hn::LoadU(d16, from));
    even = hn::BitCast(d, hn::ShiftLeft<16>(both));
    odd = hn::BitCast(d, hn::And(both, hn::Set(d32, 0xFFFF0000u)));
  }
  template <class D>
  static HWY_INLINE void store_pair(D d, hn::Vec<D> even, hn::Vec<D> odd, std::uint16_t* to, bool stream) {
    const hn::Repartition<std::uint16_t, D> d16;
    const auto lower = hn::BitCast(d16, hn::ShiftRight<16>(rounded(d, even)));
    const auto both = hn::OddEven(hn::BitCast(d16, rounded(d, odd)), lower);
    if (stream) {  // in halves: the alignment is that of one vector of elements
      const hn::Half<decltype(d16)> half;
      hn::Stream(hn::LowerHalf(half, both), half, to);
      hn::Stream(hn::UpperHalf(half, both), half, to + hn::Lanes(half));
    } else {
      hn::StoreU(both, d16, to);
    }
  }
#endif

 private:
  /// Rounded at bit 16; the bits below are not cleared.
  template <class D>
  static HWY_INLINE auto rounded(D, hn::Vec<D> v) {
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::BitCast(d32, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));  // a tie goes to the even neighbour
    return hn::Add(hn::Add(bits, hn::Set(d32, 0x7FFFu)), odd);
  }
};

/// IEEE half precision. Converted by the CPU where Highway's target implies F16C, else with integers below.
struct Float16 : Apart<Float16, std::uint16_t> {
  using Stored = std::uint16_t;
  using Lane = float;
  static constexpr bool copies = true;

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> f16;
    return hn::PromoteTo(d, hn::BitCast(f16, load_bits(d16, from)));
  }
  template <class D>
  static HWY_INLINE auto pack(D, hn::Vec<D> v) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::Rebind<hwy::float16_t, D> f16;
    return hn::BitCast(d16, hn::DemoteTo(f16, v));
  }
#else
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto half = hn::PromoteTo(d32, load_bits(d16, from));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(d32, 0x8000u)));
    // Exponent and mantissa in f32's positions; the exponent biases differ by 112.
    const auto placed = hn::ShiftLeft<13>(hn::And(half, hn::Set(d32, 0x7FFFu)));
    const auto exponent = hn::And(placed, hn::Set(d32, 0x1Fu << 23));
    const auto normal = hn::Add(placed, hn::Set(d32, 112u << 23));
    const auto special = hn::Add(placed, hn::Set(d32, 224u << 23));  // infinity and NaN keep the top exponent
    // A subnormal m·2^-24 is (2^-14 + m·2^-24) - 2^-14, exactly.
    const auto lifted = hn::BitCast(d, hn::Add(placed, hn::Set(d32, 113u << 23)));
    const auto subnormal = hn::BitCast(d32, hn::Sub(lifted, hn::BitCast(d, hn::Set(d32, 113u << 23))));
    auto bits = hn::IfThenElse(hn::Eq(exponent, hn::Set(d32, 0x1Fu << 23)), special, normal);
    bits = hn::IfThenElse(hn::Eq(exponent, hn::Zero(d32)), subnormal, bits);
    return hn::BitCast(d, hn::Or(bits, sign));
  }
  template <class D>
  static HWY_INLINE auto pack(D d, hn::Vec<D> v) {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const hn::RebindToSigned<D> i32;
    const auto all = hn::BitCast(i32, v);
    const auto bits = hn::And(all, hn::Set(i32, 0x7FFFFFFF));
    const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(d32, v)), hn::Set(d32, 0x8000u));
    // Normal results: half of the last kept bit, less one where the tie goes down, then drop 13 bits and the
    // bias.
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(i32, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(i32, 0xFFF - (112 << 23))), odd);
    const auto normal = hn::ShiftRight<13>(rounded);
    // Subnormal results: next to 0.5 the last bit of an f32 is 2^-24, so the addition rounds as needed.
    const auto half = hn::Set(d, 0.5f);
    const auto subnormal = hn::Sub(hn::BitCast(i32, hn::Add(hn::BitCast(d, bits), half)), hn::BitCast(i32, half));
    const auto special = hn::IfThenElse(hn::Gt(bits, hn::Set(i32, 0x7F800000)), hn::Set(i32, 0x7E00),
                                        hn::Set(i32, 0x7C00));  // NaN, or infinity
    auto half_bits = hn::IfThenElse(hn::Lt(bits, hn::Set(i32, 113 << 23)), subnormal, normal);
    half_bits = hn::IfThenElse(hn::Gt(bits, hn::Set(i32, 0x477FFFFF)), special, half_bits);  // 65536 and beyond
    return hn::DemoteTo(d16, hn::Or(half_bits, hn::BitCast(i32, sign)));
  }
#endif
};

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#endif

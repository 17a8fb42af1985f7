// How the sources of a reduction are combined, lane by lane: included once per Highway target.
// Each has prepare (on each input lane), apply (combines two lanes) and finish (on the result before
// rounding).
#if defined(MEDLEY_CORE_REDUCE_COMBINE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEDLEY_CORE_REDUCE_COMBINE_INL_H
#undef MEDLEY_CORE_REDUCE_COMBINE_INL_H
#else
#define MEDLEY_CORE_REDUCE_COMBINE_INL_H
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Which of two NaNs an addition returns depends on the operand order that the compiler picks, so NaN results
/// are canonicalised at the end: two instructions per vector, however many sources.
template <class D>
HWY_INLINE hn::Vec<D> canonical(D d, hn::Vec<D> v) {
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::IsNaN(v), nan, v);
}

/// For lanes that need no conversion on input or output.
struct AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> prepare(D, hn::Vec<D> v) {
    return v;
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> finish(D, hn::Vec<D> v, int) {
    return v;
  }
};

struct FloatAsIs : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> finish(D d, hn::Vec<D> v, int) {
    return canonical(d, v);
  }
};

struct FloatSum : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Add(a, b);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> finish(D d, hn::Vec<D> v, int divisor) {
    if (divisor != 1) v = divided(d, v, divisor);
    return canonical(d, v);
  }

 private:
  // For a power of two, multiplying gives the same bits as dividing and takes a third of the time or less.
  template <class D>
  static HWY_INLINE hn::Vec<D> divided(D d, hn::Vec<D> v, int divisor) {
    using T = hn::TFromD<D>;
    const T by = static_cast<T>(divisor);
    if (std::has_single_bit(static_cast<unsigned>(divisor))) return hn::Mul(v, hn::Set(d, T{1} / by));
    return hn::Div(v, hn::Set(d, by));
  }
};

struct FloatProduct : FloatAsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Mul(a, b);
  }
};

/// The minimum of IEEE 754-2019: NaN wins, -0 is below +0. Where neither is less they are equal, zeros of
/// either sign, or NaN: or-ing their bits is right in each case. (Highway's Min differs between CPUs for NaN
/// and zeros.)
struct FloatMin : FloatAsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::IfThenElse(hn::Lt(a, b), a, hn::IfThenElse(hn::Lt(b, a), b, hn::Or(a, b)));
  }
};

/// -min(-a, -b), with the signs flipped only on input and output.
struct FloatMax : FloatMin {
  template <class D>
  static HWY_INLINE hn::Vec<D> prepare(D, hn::Vec<D> v) {
    return hn::Neg(v);
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> finish(D d, hn::Vec<D> v, int) {
    return canonical(d, hn::Neg(v));
  }
};

/// Added and multiplied as unsigned, since a lane may be a plain C++ integer: the bits are the same, and unsigned
/// may wrap.
struct IntSum : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    const hn::RebindToUnsigned<D> bits;
    return hn::BitCast(d, hn::Add(hn::BitCast(bits, a), hn::BitCast(bits, b)));
  }
};

struct IntProduct : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D d, hn::Vec<D> a, hn::Vec<D> b) {
    const hn::RebindToUnsigned<D> bits;
    return hn::BitCast(d, product(bits, hn::BitCast(bits, a), hn::BitCast(bits, b)));
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<D> product(D d, hn::Vec<D> a, hn::Vec<D> b) {
    using T = hn::TFromD<D>;
    if constexpr (hn::MaxLanes(D()) == 1) {
      return hn::Set(d, static_cast<T>(std::uint64_t{hn::GetLane(a)} * hn::GetLane(b)));
    } else if constexpr (sizeof(T) > 1) {
      return hn::Mul(a, b);
    } else {  // no CPU multiplies bytes: the even ones in the lower half of 16 bits, the odd ones in the
              // upper
      const hn::Repartition<std::uint16_t, D> d16;
      const auto a16 = hn::BitCast(d16, a), b16 = hn::BitCast(d16, b);
      const auto even = hn::And(hn::Mul(a16, b16), hn::Set(d16, std::uint16_t{0xFF}));
      const auto odd = hn::ShiftLeft<8>(hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16)));
      return hn::BitCast(d, hn::Or(even, odd));
    }
  }
};

struct IntMin : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Min(a, b);
  }
};

struct IntMax : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Max(a, b);
  }
};

struct BitAnd : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::And(a, b);
  }
};

struct BitOr : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Or(a, b);
  }
};

struct BitXor : AsIs {
  template <class D>
  static HWY_INLINE hn::Vec<D> apply(D, hn::Vec<D> a, hn::Vec<D> b) {
    return hn::Xor(a, b);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#endif

// The loops of a reduction, for one instruction set: included once per Highway target by reduce_*.cpp.
// A kernel is an Element (how lanes are loaded and stored) and a Combine (what happens between sources).
#if defined(MEDLEY_CORE_REDUCE_LOOP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MEDLEY_CORE_REDUCE_LOOP_INL_H
#undef MEDLEY_CORE_REDUCE_LOOP_INL_H
#else
#define MEDLEY_CORE_REDUCE_LOOP_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/reduce.hpp"
#include "core/reduce_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The sources of one call. Two of them, the common case, are kept in registers: stores of bytes may alias
/// `list`, so the compiler would otherwise fetch the pointers again for every vector.
template <class T, int fixed>
struct Sources {
  const void* const* list;
  int n;
  HWY_INLINE Sources(const void* const* srcs, int n_srcs) : list(srcs), n(n_srcs) {}
  HWY_INLINE const T* operator[](int k) const { return static_cast<const T*>(list[k]); }
  HWY_INLINE int size() const { return n; }
};
template <class T>
struct Sources<T, 2> {
  const T *first, *second;
  HWY_INLINE Sources(const void* const* srcs, int)
      : first(static_cast<const T*>(srcs[0])), second(static_cast<const T*>(srcs[1])) {}
  HWY_INLINE const T* operator[](int k) const { return k == 0 ? first : second; }
  HWY_INLINE constexpr int size() const { return 2; }
};

/// Loads one vector of a source, ready to be combined.
template <class Element, class Combine, class D>
HWY_INLINE hn::Vec<D> load(D d, const typename Element::Stored* from) {
  return Combine::prepare(d, Element::load(d, from));
}

/// One vector of the result at element i, as it will be stored.
template <class Element, class Combine, class D, class S>
HWY_INLINE auto result(D d, const S& srcs, std::size_t i, int divisor) {
  auto v = load<Element, Combine>(d, srcs[0] + i);
  for (int k = 1; k < srcs.size(); ++k) v = Combine::apply(d, v, load<Element, Combine>(d, srcs[k] + i));
  return Element::pack(d, Combine::finish(d, v, divisor));
}

/// Four vectors of the result at element i: enough to hide the latency of one behind the loads of the others.
template <class Element, class Combine, class D, class S>
HWY_INLINE void reduce_block(D d, typename Element::Stored* dst, const S& srcs, std::size_t i, int divisor,
                             bool stream) {
  const std::size_t n = hn::Lanes(d);
  const auto* src = srcs[0] + i;
  auto v0 = load<Element, Combine>(d, src);
  auto v1 = load<Element, Combine>(d, src + n);
  auto v2 = load<Element, Combine>(d, src + 2 * n);
  auto v3 = load<Element, Combine>(d, src + 3 * n);
  for (int k = 1; k < srcs.size(); ++k) {
    src = srcs[k] + i;
    v0 = Combine::apply(d, v0, load<Element, Combine>(d, src));
    v1 = Combine::apply(d, v1, load<Element, Combine>(d, src + n));
    v2 = Combine::apply(d, v2, load<Element, Combine>(d, src + 2 * n));
    v3 = Combine::apply(d, v3, load<Element, Combine>(d, src + 3 * n));
  }
  const hn::Rebind<typename Element::Stored, D> out;
  const auto r0 = Element::pack(d, Combine::finish(d, v0, divisor));
  const auto r1 = Element::pack(d, Combine::finish(d, v1, divisor));
  const auto r2 = Element::pack(d, Combine::finish(d, v2, divisor));
  const auto r3 = Element::pack(d, Combine::finish(d, v3, divisor));
  if (stream) {
    hn::Stream(r0, out, dst + i);
    hn::Stream(r1, out, dst + i + n);
    hn::Stream(r2, out, dst + i + 2 * n);
    hn::Stream(r3, out, dst + i + 3 * n);
  } else {
    store(out, r0, dst + i);
    store(out, r1, dst + i + n);
    store(out, r2, dst + i + 2 * n);
    store(out, r3, dst + i + 3 * n);
  }
}

/// Fewer elements than d has lanes: two overlapping vectors of half, a quarter, … the size. Both are computed
/// before either is stored, so that a source that is also dst is read unchanged.
template <class Element, class Combine, class D, class S>
HWY_INLINE void reduce_few(D, typename Element::Stored* dst, const S& srcs, std::size_t count, int divisor) {
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    const hn::Rebind<typename Element::Stored, decltype(half)> out;
    const std::size_t n = hn::Lanes(half);
    if (count < n) return reduce_few<Element, Combine>(half, dst, srcs, count, divisor);
    const auto first = result<Element, Combine>(half, srcs, 0, divisor);
    const auto last = result<Element, Combine>(half, srcs, count - n, divisor);
    store(out, first, dst);
    store(out, last, dst + (count - n));
  }
}

/// How many elements lie before the first vector that may be streamed to dst; `count` when none may.
template <class D, class T>
HWY_INLINE std::size_t elements_to_alignment(D out, const T* dst, std::size_t count) {
  const std::size_t bytes = hn::Lanes(out) * sizeof(T);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(dst) % bytes;
  // Highway streams whole registers, and 16-bit elements before AVX2 fill only half of one.
  if (bytes < 16 || past % sizeof(T) != 0) return count;
  return past == 0 ? 0 : (bytes - past) / sizeof(T);
}

/// All of a call. The first and the last vector may overlap their neighbours (the last one ends at the last
/// element, the first one lies before the alignment that streaming needs): they are computed before, and
/// stored after, everything between. So all elements go through vectors, and dst may be a source.
template <class Element, class Combine, int fixed>
HWY_NOINLINE void reduce_all(void* to, const void* const* list, int n_srcs, std::size_t count, int divisor,
                             bool stream) {
  using T = typename Element::Stored;
  T* const dst = static_cast<T*>(to);
  const Sources<T, fixed> srcs(list, n_srcs);
  const hn::ScalableTag<typename Element::Lane> d;
  const hn::Rebind<T, decltype(d)> out;
  const std::size_t n = hn::Lanes(d);
  if (count < n) return reduce_few<Element, Combine>(d, dst, srcs, count, divisor);

  const auto first = result<Element, Combine>(d, srcs, 0, divisor);
  const auto last = result<Element, Combine>(d, srcs, count - n, divisor);
  const std::size_t aligned = stream ? elements_to_alignment(out, dst, count) : count;
  const bool streaming = aligned < count;
  std::size_t i = streaming ? aligned : n;
  for (; i + 4 * n <= count; i += 4 * n) reduce_block<Element, Combine>(d, dst, srcs, i, divisor, streaming);
  for (; i + n <= count; i += n) store(out, result<Element, Combine>(d, srcs, i, divisor), dst + i);
  store(out, first, dst);
  store(out, last, dst + (count - n));
  if (streaming) hwy::FlushStream();
}

/// A ReduceFn. Element::copies says that one source and no divisor leaves the bits as they are.
template <class Element, class Combine>
void reduce(void* dst, const void* const* srcs, int n_srcs, std::size_t count, int divisor, bool stream) {
  if (n_srcs == 2) return reduce_all<Element, Combine, 2>(dst, srcs, n_srcs, count, divisor, stream);
  if (Element::copies && n_srcs == 1 && divisor == 1) {
    if (dst == srcs[0] || count == 0) return;
    const std::size_t bytes = count * sizeof(typename Element::Stored);
    if (stream) return copy_stream(dst, srcs[0], bytes);
    std::memcpy(dst, srcs[0], bytes);
    return;
  }
  reduce_all<Element, Combine, 0>(dst, srcs, n_srcs, count, divisor, stream);
}

/// The reductions that all numbers have.
template <class Element, class Sum, class Product, class Min, class Max>
ReduceFn arithmetic(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return reduce<Element, Sum>;
    case ReduceOp::product:
      return reduce<Element, Product>;
    case ReduceOp::min:
      return reduce<Element, Min>;
    case ReduceOp::max:
      return reduce<Element, Max>;
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#endif

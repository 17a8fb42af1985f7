// The loops of a reduction, for one instruction set: included once per Highway target by reduce_*.cpp.
// A kernel is an Element (how lanes are loaded and stored) and a Combine (how sources are combined).
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
#include <medley/sdk/reduce.hpp>

#include "reduce/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace medley {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// With more sources than this it pays to keep partial results in the L1 cache. GB/s for f32 / bf16 with
/// buffers of 8 MiB on one core of an EPYC 9004: 64 sources all at once 13 / 7, by sixteen 21 / 21, by eight
/// 19 / 18; 16 sources all at once 22 / 23, by eight 19 / 19.
inline constexpr int sources_per_pass = 16;
/// Bytes of partial results between passes: 64 sources of bf16 ran at 15 GB/s with 2 KiB, 18 with 4 KiB, 21 with 8
/// KiB.
inline constexpr std::size_t carried_bytes = 8192;

/// The sources of one call. Two of them, the common case, are kept in registers: byte stores may alias
/// `list`, so the compiler would otherwise reload the pointers for every vector.
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

/// Loads one vector of a source, prepared for combining.
template <class Element, class Combine, class D>
HWY_INLINE hn::Vec<D> load(D d, const typename Element::Stored* from) {
  return Combine::prepare(d, Element::load(d, from));
}
template <class Element, class Combine, class D>
HWY_INLINE void load_pair(D d, const typename Element::Stored* from, hn::Vec<D>& a, hn::Vec<D>& b) {
  Element::load_pair(d, from, a, b);
  a = Combine::prepare(d, a);
  b = Combine::prepare(d, b);
}

/// One vector of the result at element i, as it will be stored.
template <class Element, class Combine, class D, class S>
HWY_INLINE auto result(D d, const S& srcs, std::size_t i, int divisor) {
  auto v = load<Element, Combine>(d, srcs[0] + i);
  for (int k = 1; k < srcs.size(); ++k) v = Combine::apply(d, v, load<Element, Combine>(d, srcs[k] + i));
  return Element::pack(d, Combine::finish(d, v, divisor));
}

/// The sources that a pass combines, and the partial results it takes from the previous pass and leaves for the next
/// one.
template <class Lane>
struct Pass {
  int begin, end;
  const Lane* taken;  ///< nullptr in the first pass
  Lane* left;         ///< nullptr in the last pass, which writes dst
};

/// Four vectors at element i: enough to hide the latency of each behind the loads of the others.
template <class Element, class Combine, class D, class S>
HWY_INLINE void reduce_block(D d, typename Element::Stored* dst, const S& srcs, std::size_t i, int divisor, bool stream,
                             Pass<hn::TFromD<D>> pass) {
  const std::size_t n = hn::Lanes(d);
  hn::Vec<D> v0, v1, v2, v3;
  int k = pass.begin;
  if (pass.taken) {
    v0 = hn::Load(d, pass.taken);
    v1 = hn::Load(d, pass.taken + n);
    v2 = hn::Load(d, pass.taken + 2 * n);
    v3 = hn::Load(d, pass.taken + 3 * n);
  } else {
    const auto* src = srcs[k++] + i;
    load_pair<Element, Combine>(d, src, v0, v1);
    load_pair<Element, Combine>(d, src + 2 * n, v2, v3);
  }
  for (; k < pass.end; ++k) {
    const auto* src = srcs[k] + i;
    hn::Vec<D> x0, x1, x2, x3;
    load_pair<Element, Combine>(d, src, x0, x1);
    load_pair<Element, Combine>(d, src + 2 * n, x2, x3);
    v0 = Combine::apply(d, v0, x0);
    v1 = Combine::apply(d, v1, x1);
    v2 = Combine::apply(d, v2, x2);
    v3 = Combine::apply(d, v3, x3);
  }
  if (pass.left) {
    hn::Store(v0, d, pass.left);
    hn::Store(v1, d, pass.left + n);
    hn::Store(v2, d, pass.left + 2 * n);
    hn::Store(v3, d, pass.left + 3 * n);
    return;
  }
  v0 = Combine::finish(d, v0, divisor);
  v1 = Combine::finish(d, v1, divisor);
  v2 = Combine::finish(d, v2, divisor);
  v3 = Combine::finish(d, v3, divisor);
  Element::store_pair(d, v0, v1, dst + i, stream);
  Element::store_pair(d, v2, v3, dst + i + 2 * n, stream);
}

/// Whole blocks of elements from i on, a few sources at a time: sources with equal page offsets
/// compete for the same eight ways of the L1 cache, and the CPU prefetches only so many streams.
template <class Element, class Combine, class D, class S>
HWY_NOINLINE std::size_t reduce_in_passes(D d, typename Element::Stored* dst, const S& srcs, std::size_t i,
                                          std::size_t count, int divisor, bool stream) {
  using Lane = typename Element::Lane;
  constexpr std::size_t room = carried_bytes / sizeof(Lane);
  alignas(64) Lane carried[room];
  const std::size_t step = 4 * hn::Lanes(d);
  while (i + step <= count) {
    const std::size_t length = HWY_MIN(room, (count - i) / step * step);
    for (int k = 0; k < srcs.size(); k += sources_per_pass) {
      const int end = HWY_MIN(k + sources_per_pass, srcs.size());
      for (std::size_t j = 0; j < length; j += step) {
        const Pass<Lane> pass{k, end, k > 0 ? carried + j : nullptr, end < srcs.size() ? carried + j : nullptr};
        reduce_block<Element, Combine>(d, dst, srcs, i + j, divisor, stream, pass);
      }
    }
    i += length;
  }
  return i;
}

/// Fewer elements than a vector has lanes: two overlapping vectors of at most `most` lanes, a power of two, or of half
/// as many where that is too much. Both are computed before either is stored, so that a source that is also dst is read
/// unchanged. The limit is a number of lanes, not a fraction of a vector: SVE's length depends on the CPU, and a
/// fraction can be zero.
template <class Element, class Combine, std::size_t most, class S>
HWY_INLINE void reduce_few(typename Element::Stored* dst, const S& srcs, std::size_t count, int divisor) {
  if constexpr (most > 0) {
    const hn::CappedTag<typename Element::Lane, most> d;
    const hn::Rebind<typename Element::Stored, decltype(d)> out;
    const std::size_t n = hn::Lanes(d);
    if (count < n) return reduce_few<Element, Combine, most / 2>(dst, srcs, count, divisor);
    const auto first = result<Element, Combine>(d, srcs, 0, divisor);
    const auto last = result<Element, Combine>(d, srcs, count - n, divisor);
    store(out, first, dst);
    store(out, last, dst + (count - n));
  }
}

/// The number of elements before the first vector that can be streamed to dst; `count` when none can.
template <class D, class T>
HWY_INLINE std::size_t elements_to_alignment(D out, const T* dst, std::size_t count) {
  const std::size_t bytes = hn::Lanes(out) * sizeof(T);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(dst) % bytes;
  // Highway streams whole registers, and 16-bit elements before AVX2 fill only half of one.
  if (bytes < 16 || past % sizeof(T) != 0) return count;
  return past == 0 ? 0 : (bytes - past) / sizeof(T);
}

/// One whole call. The first and the last vector may overlap their neighbours (the last one ends at the last
/// element, the first one precedes the alignment that streaming needs): they are computed before, and
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
  if (count < n) return reduce_few<Element, Combine, hn::MaxLanes(d) / 2>(dst, srcs, count, divisor);

  const auto first = result<Element, Combine>(d, srcs, 0, divisor);
  const auto last = result<Element, Combine>(d, srcs, count - n, divisor);
  const std::size_t aligned = stream ? elements_to_alignment(out, dst, count) : count;
  const bool streaming = aligned < count;
  // Blocks start with dst, where a cache line most likely starts too; without blocks, the first vector is
  // already done.
  std::size_t i = streaming ? aligned : count < 4 * n ? n : 0;
  if (srcs.size() > sources_per_pass) {
    i = reduce_in_passes<Element, Combine>(d, dst, srcs, i, count, divisor, streaming);
  } else {
    const Pass<typename Element::Lane> whole{0, srcs.size(), nullptr, nullptr};
    for (; i + 4 * n <= count; i += 4 * n) reduce_block<Element, Combine>(d, dst, srcs, i, divisor, streaming, whole);
  }
  for (; i + n <= count; i += n) store(out, result<Element, Combine>(d, srcs, i, divisor), dst + i);
  store(out, first, dst);
  store(out, last, dst + (count - n));
  if (streaming) hwy::FlushStream();
}

/// A ReduceFn. Element::copies means that one source and no divisor leaves the bits unchanged.
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

/// The reductions that all numeric types have.
template <class Element, class Sum, class Product, class Min, class Max>
ReduceFn arithmetic(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return reduce<Element, Sum>;
    case ReduceOp::product: return reduce<Element, Product>;
    case ReduceOp::min: return reduce<Element, Min>;
    case ReduceOp::max: return reduce<Element, Max>;
    default: return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace medley
HWY_AFTER_NAMESPACE();

#endif

#include "core/hazards.hpp"

namespace medley::core {
namespace {

void add(Accesses& list, const void* base, std::int64_t offset, std::int64_t count, DType dtype, bool write) {
  if (!base || count == 0) return;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto* begin = static_cast<const std::byte*>(base) + offset * element;
  list.push_back({begin, begin + count * element, write});
}

void add_all(Accesses& list, const void* base, std::int64_t count, const std::int64_t* counts,
             const std::int64_t* offsets, int ranks, DType dtype, bool write) {
  if (!counts) return add(list, base, 0, count, dtype, write);
  for (int r = 0; r < ranks; ++r) add(list, base, offsets[r], counts[r], dtype, write);
}

}  // namespace

Accesses accesses_of(const Call& call, int ranks) {
  Accesses list;
  add_all(list, call.in, call.in_count, call.in_counts, call.in_offsets, ranks, call.dtype, false);
  add_all(list, call.out, call.out_count, call.out_counts, call.out_offsets, ranks, call.dtype, true);
  return list;
}

bool conflict(const Accesses& a, const Accesses& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if ((x.write || y.write) && x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

}  // namespace medley::core

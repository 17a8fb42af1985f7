#include "core/hazards.hpp"

namespace medley::core {
namespace {

void add(std::vector<Access>& list, const void* base, std::int64_t offset, std::int64_t count, DType dtype, bool write) {
  if (!base || count == 0) return;
  const auto element = static_cast<std::int64_t>(size_of(dtype));
  const auto* begin = static_cast<const std::byte*>(base) + offset * element;
  list.push_back({begin, begin + count * element, write});
}

void add_all(std::vector<Access>& list, const void* base, std::int64_t count, const std::int64_t* counts,
             const std::int64_t* offsets, int ranks, DType dtype, bool write) {
  if (!counts) return add(list, base, 0, count, dtype, write);
  for (int r = 0; r < ranks; ++r) add(list, base, offsets[r], counts[r], dtype, write);
}

}  // namespace

std::vector<Access> accesses_of(const Call& call, int ranks) {
  std::vector<Access> list;
  if (!call.in_counts && !call.out_counts) list.reserve(2);
  add_all(list, call.in, call.in_count, call.in_counts, call.in_offsets, ranks, call.dtype, false);
  add_all(list, call.out, call.out_count, call.out_counts, call.out_offsets, ranks, call.dtype, true);
  return list;
}

bool conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if ((x.write || y.write) && x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

}  // namespace medley::core

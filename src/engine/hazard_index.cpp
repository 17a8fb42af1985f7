#include "engine/hazard_index.hpp"

#include <algorithm>

namespace medley::core {
namespace {

constexpr std::size_t most_spare = 64;   // segments kept for new ones

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

void HazardIndex::Segment::add_reader(Operation& operation) {
  if (!readers.empty() && readers.back().operation == &operation) return;   // two of its intervals overlap
  if (readers.size() >= 2 * live_readers + 8) std::erase_if(readers, [](const Reader& reader) { return !reader.operation; });
  readers.push_back({operation.order, &operation});
  ++live_readers;
}

void HazardIndex::Segment::remove_reader(const Operation& operation) {
  const auto found = std::lower_bound(readers.begin(), readers.end(), operation.order,
                                      [](const Reader& reader, std::uint64_t order) { return reader.order < order; });
  if (found == readers.end() || found->operation != &operation) return;   // somebody has written since
  found->operation = nullptr;
  if (--live_readers == 0) readers.clear();
}

HazardIndex::Segments::iterator HazardIndex::insert(Segments::iterator before, const std::byte* begin, const std::byte* end) {
  if (spare_.empty()) {
    const auto made = segments_.emplace_hint(before, begin, Segment{});
    made->second.end = end;
    return made;
  }
  Segments::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = begin;
  node.mapped().end = end;
  return segments_.insert(before, std::move(node));
}

/// The second half.
HazardIndex::Segments::iterator HazardIndex::split(Segments::iterator at, const std::byte* where) {
  const auto second = insert(std::next(at), where, at->second.end);
  at->second.end = where;
  second->second.writer = at->second.writer;
  second->second.readers = at->second.readers;
  second->second.live_readers = at->second.live_readers;
  return second;
}

/// Makes segments of exactly this interval, and returns the first.
HazardIndex::Segments::iterator HazardIndex::cover(const std::byte* begin, const std::byte* end) {
  auto at = segments_.upper_bound(begin);
  if (at != segments_.begin()) {
    const auto before = std::prev(at);
    if (before->first == begin) {
      at = before;
    } else if (before->second.end > begin) {
      at = split(before, begin);
    }
  }
  auto first = segments_.end();
  for (const std::byte* covered = begin; covered < end;) {
    if (at == segments_.end() || at->first >= end) {
      at = insert(at, covered, end);
    } else if (at->first > covered) {
      at = insert(at, covered, at->first);
    } else if (at->second.end > end) {
      split(at, end);
    }
    if (first == segments_.end()) first = at;
    covered = at->second.end;
    ++at;
  }
  return first;
}

HazardIndex::Segments::iterator HazardIndex::drop(Segments::iterator at) {
  const auto next = std::next(at);
  if (spare_.size() < most_spare) {
    spare_.push_back(segments_.extract(at));
  } else {
    segments_.erase(at);
  }
  return next;
}

void HazardIndex::remove(Operation& operation) {
  for (const Access& access : operation.accesses) {
    auto at = segments_.lower_bound(access.begin);   // segments begin where the interval does, as long as they are its own
    while (at != segments_.end() && at->first < access.end) {
      Segment& segment = at->second;
      if (segment.writer == &operation) segment.writer = nullptr;
      segment.remove_reader(operation);
      at = segment.unused() ? drop(at) : std::next(at);
    }
  }
}

void HazardIndex::clear() {
  segments_.clear();
}

}  // namespace medley::core

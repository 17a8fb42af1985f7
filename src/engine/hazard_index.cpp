#include "engine/hazard_index.hpp"

#include "compress/spec.hpp"

#include <algorithm>

namespace medley::core {
namespace {

constexpr std::size_t most_spare = 64;  // segments kept for reuse
constexpr std::size_t least_bulk = 8;   // ranges of a fused message for which binary searches pay

bool conflict(const Access& x, const Access& y) { return (x.write || y.write) && x.begin < y.end && y.begin < x.end; }

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

void find_accesses(const Call& call, int ranks, Accesses& accesses) {
  accesses.clear();
  // The root of a compressed broadcast gets what it sent, rounded as for everybody else.
  const bool writes_input = call.op == Op::broadcast && compress::is_compressed(call.algorithm);
  add_all(accesses, call.in, call.in_count, call.in_counts, call.in_offsets, ranks, call.dtype, writes_input);
  add_all(accesses, call.out, call.out_count, call.out_counts, call.out_offsets, ranks, call.dtype, true);
  if (call.feedback) {  // operations that share the residual of a tensor follow each other
    const auto* begin = reinterpret_cast<const std::byte*>(call.feedback);
    accesses.push_back({begin, begin + 1, true});
  }
}

void find_accesses(const fuse::Fusion& fusion, const Call& call, int ranks, Accesses& accesses) {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  std::vector<Access> all;
  all.reserve(2 * fusion.tensors().size());
  for (const FusedTensor& tensor : fusion.tensors()) {
    const auto see = [&](const void* base, bool many, bool write) {
      const auto* begin = static_cast<const std::byte*>(base);
      if (begin && tensor.count > 0) all.push_back({begin, begin + tensor.count * (many ? ranks : 1) * element, write});
    };
    if (tensor.in != tensor.out || fuse::many_in(call.op)) see(tensor.in, fuse::many_in(call.op), false);
    see(tensor.out, fuse::many_out(call.op), true);
  }
  std::sort(all.begin(), all.end(), [](const Access& a, const Access& b) {
    return a.write != b.write ? a.write < b.write : a.begin < b.begin;
  });
  accesses.clear();
  for (std::size_t i = 0; i < all.size();) {
    Access united = all[i];
    for (++i; i < all.size() && all[i].write == united.write && all[i].begin <= united.end; ++i)
      united.end = std::max(united.end, all[i].end);
    accesses.push_back(united);
  }
  if (accesses.size() < least_bulk) return;
  const auto reads =
      std::find_if(accesses.begin(), accesses.end(), [](const Access& one) { return one.write; }) - accesses.begin();
  accesses.mark_sorted(static_cast<std::size_t>(reads));
}

bool conflict(const Accesses& a, const Accesses& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if (conflict(x, y)) return true;
    }
  }
  return false;
}

void HazardIndex::Segment::add_reader(Operation& operation) {
  if (!readers.empty() && readers.back().operation == &operation) return;  // two of its intervals overlap
  if (readers.size() >= 2 * live_readers + 8)
    std::erase_if(readers, [](const Reader& reader) { return !reader.operation; });
  readers.push_back({operation.order, &operation});
  ++live_readers;
}

void HazardIndex::Segment::remove_reader(const Operation& operation) {
  const auto found = std::lower_bound(readers.begin(), readers.end(), operation.order,
                                      [](const Reader& reader, std::uint64_t order) { return reader.order < order; });
  if (found == readers.end() || found->operation != &operation) return;  // another operation has written since
  found->operation = nullptr;
  if (--live_readers == 0) readers.clear();
}

HazardIndex::Segments::iterator HazardIndex::insert(Segments::iterator before, const std::byte* begin,
                                                    const std::byte* end) {
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

/// Returns the second half.
HazardIndex::Segments::iterator HazardIndex::split(Segments::iterator at, const std::byte* where) {
  const auto second = insert(std::next(at), where, at->second.end);
  at->second.end = where;
  second->second.writer = at->second.writer;
  second->second.readers = at->second.readers;
  second->second.live_readers = at->second.live_readers;
  return second;
}

/// Cuts segments for exactly this interval, and returns the first.
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

bool HazardIndex::conflicts_with_few(const Access& access) const {
  return few_count_ > 0 && !outside_hull(access) &&
         std::any_of(few_.begin(), few_.begin() + few_count_,
                     [&access](const FewEntry& entry) { return conflict(entry.access, access); });
}

/// False where the list overflows or conflicts; the segments then hold the other entries already.
bool HazardIndex::add_to_few(Operation& operation) {
  const std::size_t count = operation.accesses.size();
  const bool alone = std::none_of(operation.accesses.begin(), operation.accesses.end(),
                                  [this](const Access& access) { return conflicts_with_few(access); });
  if (few_count_ + count > few_.size() || !alone) {
    index_few();
    return false;
  }
  append_to_few(operation);
  return true;
}

/// In order of issue, like the readers of a segment.
void HazardIndex::index_few() {
  std::sort(few_.begin(), few_.begin() + few_count_,
            [](const FewEntry& a, const FewEntry& b) { return a.operation->order < b.operation->order; });
  for (std::size_t i = 0; i < few_count_; ++i) {
    if (i == 0 || few_[i - 1].operation != few_[i].operation) add_to_segments(*few_[i].operation, [](Operation&) {});
  }
  few_count_ = 0;
}

bool HazardIndex::conflicts_inside(const Access& access) const {
  if (std::any_of(bulks_.begin(), bulks_.end(),
                  [&access](const Operation* bulk) { return bulk->accesses.conflict_in_order(access); }))
    return true;
  if (segments_.empty()) return conflicts_with_few(access);
  auto at = segments_.upper_bound(access.begin);
  if (at != segments_.begin() && std::prev(at)->second.end > access.begin) --at;
  for (; at != segments_.end() && at->first < access.end; ++at) {
    if (at->second.writer || (access.write && at->second.live_readers > 0)) return true;
  }
  return false;
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

bool HazardIndex::conflicts_with_bulk(const Operation& bulk, const Operation& operation) {
  return std::any_of(operation.accesses.begin(), operation.accesses.end(),
                     [&bulk](const Access& access) { return bulk.accesses.conflict_in_order(access); });
}

void HazardIndex::remove_any(Operation& operation) {
  if (operation.accesses.sorted() && std::erase(bulks_, &operation) > 0) return;
  std::size_t left = few_count_ > 0 ? operation.accesses.size() : 0;
  for (std::size_t i = 0; left > 0 && i < few_count_;) {
    if (few_[i].operation == &operation) {
      remove_from_few(i);
      --left;
    } else {
      ++i;
    }
  }
  if (segments_.empty()) return;
  for (const Access& access : operation.accesses) {
    // add() cut a segment at access.begin; one that was dropped since needs no update
    auto at = segments_.lower_bound(access.begin);
    while (at != segments_.end() && at->first < access.end) {
      Segment& segment = at->second;
      if (segment.writer == &operation) segment.writer = nullptr;
      segment.remove_reader(operation);
      at = segment.unused() ? drop(at) : std::next(at);
    }
  }
}

void HazardIndex::clear() {
  bulks_.clear();
  few_count_ = 0;
  segments_.clear();
}

}  // namespace medley::core

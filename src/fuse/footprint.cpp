#include "fuse/footprint.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace medley::fuse {
namespace {

/// Calls `see(begin, end, write)` for the memory that a call touches. v-collectives are taken as the range from their
/// first part to the end of their last one: a conflict with collected tensors is refused, so it need not be exact.
template <class See>
void each_range(const Call& call, See&& see) {
  const auto element = static_cast<std::int64_t>(size_of(call.dtype));
  const auto* in = static_cast<const std::byte*>(call.in);
  const auto* out = static_cast<const std::byte*>(call.out);
  if (in && call.in_count > 0) see(in, in + call.in_count * element, false);
  if (out && call.out_count > 0) see(out, out + call.out_count * element, true);
}

}  // namespace

bool Footprint::meets(const Ranges& ranges, const std::byte* begin, const std::byte* end) {
  const auto after = ranges.lower_bound(end);
  return after != ranges.begin() && std::prev(after)->second > begin;
}

void Footprint::unite(Ranges& ranges, const std::byte* begin, const std::byte* end) {
  auto at = ranges.upper_bound(begin);
  if (at != ranges.begin() && std::prev(at)->second >= begin) at = std::prev(at);
  while (at != ranges.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ranges.erase(at);
  }
  ranges.emplace_hint(at, begin, end);
}

bool Footprint::conflicts(const Call& call) const {
  bool found = false;
  each_range(call, [&](const std::byte* begin, const std::byte* end, bool write) {
    found = found || meets(writes_, begin, end) || (write && meets(reads_, begin, end));
  });
  return found;
}

void Footprint::add(const Call& call) {
  each_range(call, [&](const std::byte* begin, const std::byte* end, bool write) {
    unite(write ? writes_ : reads_, begin, end);
  });
}

void Overlaps::add(const Call& call) {
  const std::size_t first = ranges_.size();
  each_range(call, [&](const std::byte* begin, const std::byte* end, bool write) {
    ranges_.push_back({begin, end, write});
  });
  if (ranges_.size() != first + 2) return;
  Range &in = ranges_[first], &out = ranges_[first + 1];
  if (in.begin >= out.end || out.begin >= in.end) return;
  in = {std::min(in.begin, out.begin), std::max(in.end, out.end), true};  // in place: one range
  ranges_.pop_back();
}

bool Overlaps::any() {
  const auto before = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  if (!std::is_sorted(ranges_.begin(), ranges_.end(), before)) std::sort(ranges_.begin(), ranges_.end(), before);
  const std::byte *end = nullptr, *written = nullptr;  // of the ranges so far
  for (const Range& range : ranges_) {
    if (range.begin < written || (range.write && range.begin < end)) return true;
    end = std::max(end, range.end);
    if (range.write) written = std::max(written, range.end);
  }
  return false;
}

void Footprint::clear() {
  reads_.clear();
  writes_.clear();
}

}  // namespace medley::fuse

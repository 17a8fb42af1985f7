// What the rows of a summary add up to.
#include <algorithm>
#include <bit>

#include "base/wire_bytes.hpp"
#include "trace/summary.hpp"

namespace medley::trace {

std::map<std::string, Total> totals_of(const std::vector<Row>& rows, const Trace& trace) {
  std::map<std::string, Total> totals;
  for (const Row& r : rows) {
    const Group& group = trace.groups[r.group];
    Total& total = totals[group.name];
    total.bytes += r.bytes * r.count;
    total.count += r.count;
    total.wire_bytes += core::wire_bytes(r.op, r.bytes, std::max(1, group.size)) * static_cast<double>(r.count);
    total.us += r.total_us;
    total.exposed_us += r.exposed_us;
    total.exposed_known = total.exposed_known && r.exposed_known;
  }
  return totals;
}

Sizes sizes_of(const std::vector<Row>& rows, std::int64_t small) {
  Sizes out;
  out.small = small;
  std::int64_t bytes = 0, few = 0, few_bytes = 0;
  for (const Row& r : rows) {
    if (r.bytes < 1) continue;
    Sizes::Bin& bin = out.histogram[static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(r.bytes)))];
    bin.count += r.count;
    bin.bytes += r.count * r.bytes;
    out.count += r.count;
    bytes += r.count * r.bytes;
    few += r.bytes <= small ? r.count : 0;
    few_bytes += r.bytes <= small ? r.count * r.bytes : 0;
  }
  const auto share = [](std::int64_t part, std::int64_t all) {
    return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0.0;
  };
  out.small_share_of_count = share(few, out.count);
  out.small_share_of_bytes = share(few_bytes, bytes);
  return out;
}

std::vector<Row> merged(const std::vector<Row>& rows) {
  std::vector<Row> out;
  for (const Row& r : rows) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Row& o) {
      return o.op == r.op && o.group == r.group && o.bytes == r.bytes && o.backend == r.backend && o.phase == r.phase;
    });
    if (same == out.end()) {
      out.push_back(r);
      continue;
    }
    same->median_us =
        (same->median_us * static_cast<double>(same->timed) + r.median_us * static_cast<double>(r.timed)) /
        std::max(1.0, static_cast<double>(same->timed + r.timed));
    same->count += r.count;
    same->timed += r.timed;
    same->total_us += r.total_us;
    same->exposed_us += r.exposed_us;
    same->exposed_known = same->exposed_known && r.exposed_known;
    same->p99_us = std::max(same->p99_us, r.p99_us);
    if (same->module != r.module) same->module = "…";
  }
  return out;
}

}  // namespace medley::trace

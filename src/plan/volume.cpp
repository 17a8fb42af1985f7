#include "plan/volume.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

namespace medley::plan {

std::vector<Row> rows_of(const Schedule& schedule) {
  std::vector<Row> rows;
  using Key = std::tuple<Op, std::string_view, Count, Count, DType, Phase, std::string_view, bool, std::string_view>;
  std::map<Key, std::size_t> index;
  schedule.tally([&](const Entry& entry, Count count) {
    if (entry.kind != Kind::comm) return;
    const Key key{entry.op,    entry.group,  entry.group_size, entry.bytes, entry.dtype,
                  entry.phase, entry.module, entry.exposed,    entry.why};
    const auto [at, fresh] = index.emplace(key, rows.size());
    if (fresh) {
      rows.push_back({entry.op, entry.group, entry.group_size, entry.bytes, 0, entry.dtype, entry.phase, entry.module,
                      entry.exposed, entry.why, entry.purpose});
    }
    Row& row = rows[at->second];
    row.count = sum(row.count, count, "operations");
  });
  return rows;
}

std::map<std::string_view, Total> totals_by_group(const std::vector<Row>& rows) {
  std::map<std::string_view, Total> totals;
  for (const Row& row : rows) {
    Total& total = totals[row.group];
    total.bytes = sum(total.bytes, product({row.bytes, row.count}, "volume"), "volume");
    total.wire_bytes += row.wire();
    total.count = sum(total.count, row.count, "operations");
  }
  return totals;
}

Total total_of(const std::vector<Row>& rows) {
  Total all;
  for (const auto& [group, total] : totals_by_group(rows)) {
    all.bytes = sum(all.bytes, total.bytes, "volume");
    all.wire_bytes += total.wire_bytes;
    all.count = sum(all.count, total.count, "operations");
  }
  return all;
}

double total_wire_bytes(const Schedule& schedule) {
  double total = 0;
  schedule.tally([&](const Entry& entry, Count count) {
    if (entry.kind == Kind::comm)
      total += wire_bytes(entry.op, entry.bytes, entry.group_size) * static_cast<double>(count);
  });
  return total;
}

std::vector<Bin> histogram(const std::vector<Row>& rows) {
  std::map<Count, Bin> bins;
  for (const Row& row : rows) {
    if (row.bytes < 1) continue;
    const Count low = static_cast<Count>(std::bit_floor(static_cast<std::uint64_t>(row.bytes)));
    Bin& bin = bins[low];
    bin.low = low;
    bin.count = sum(bin.count, row.count);
    bin.bytes = sum(bin.bytes, product({row.bytes, row.count}, "volume"), "volume");
  }
  std::vector<Bin> out;
  for (const auto& [low, bin] : bins) out.push_back(bin);
  return out;
}

SmallShare small_share(const std::vector<Row>& rows, Count limit) {
  SmallShare share;
  share.limit = limit;
  double count = 0, bytes = 0;
  for (const Row& row : rows) {
    const double n = static_cast<double>(row.count), volume = n * static_cast<double>(row.bytes);
    count += n;
    bytes += volume;
    if (row.bytes > limit) continue;
    share.of_count += n;
    share.of_bytes += volume;
  }
  if (count > 0) share.of_count /= count;
  if (bytes > 0) share.of_bytes /= bytes;
  return share;
}

std::vector<MergedRow> merge_sizes(const std::vector<Row>& rows, bool keep_sizes) {
  std::vector<MergedRow> out;
  for (const Row& r : rows) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const MergedRow& m) {
      return !keep_sizes && m.row.op == r.op && m.row.group == r.group && m.row.group_size == r.group_size &&
             m.row.phase == r.phase && m.row.exposed == r.exposed && m.row.why == r.why;
    });
    const bool known = same != out.end();
    MergedRow& merged = known ? *same : out.emplace_back(MergedRow{r, r.bytes, r.bytes, 0});
    if (known) merged.row.count = sum(merged.row.count, r.count, "operations");
    merged.smallest = std::min(merged.smallest, r.bytes);
    merged.largest = std::max(merged.largest, r.bytes);
    merged.bytes = sum(merged.bytes, product({r.bytes, r.count}, "volume"), "volume");
  }
  return out;
}

Volume volume_of(const std::vector<Row>& rows, Count small_limit) {
  return {totals_by_group(rows), total_of(rows), histogram(rows), small_share(rows, small_limit)};
}

}  // namespace medley::plan

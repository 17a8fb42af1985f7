// Sums over a schedule: rows as in CONTRACT.md, totals per group, histogram of message sizes, share of small
// messages. Used by `medley plan`, its sweeps and the comparison with other tools' lists.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/schedule.hpp"

namespace medley::plan {

/// Equal communications and their number.
struct Row {
  Op op = Op::all_reduce;
  std::string_view group;
  Count group_size = 1;
  Count bytes = 0;
  Count count = 0;
  DType dtype = DType::bf16;
  Phase phase = Phase::forward;
  std::string module;
  bool exposed = true;
  std::string_view why;
  Purpose purpose = Purpose::unspecified;
  double wire() const { return wire_bytes(op, bytes, group_size) * static_cast<double>(count); }
};
/// In order of first issue.
std::vector<Row> rows_of(const Schedule& schedule);

struct Total {
  Count bytes = 0;
  double wire_bytes = 0;
  Count count = 0;
};
std::map<std::string_view, Total> totals_by_group(const std::vector<Row>& rows);
Total total_of(const std::vector<Row>& rows);
double total_wire_bytes(const Schedule& schedule);

/// Messages of low ≤ bytes < 2·low; `low` is a power of two.
struct Bin {
  Count low = 1;
  Count count = 0;
  Count bytes = 0;
};
std::vector<Bin> histogram(const std::vector<Row>& rows);

/// Messages of at most `limit` bytes, as a share of all messages and of all bytes.
struct SmallShare {
  Count limit = 0;
  double of_count = 0, of_bytes = 0;
};
SmallShare small_share(const std::vector<Row>& rows, Count limit);

/// Rows that differ in size alone (gradient buckets, fetches) as one, with the range of their sizes.
struct MergedRow {
  Row row;  ///< the first of them, with the count of all
  Count smallest = 0, largest = 0;
  Count bytes = 0;  ///< of all
};
/// In order of first issue; with `keep_sizes` nothing is merged.
std::vector<MergedRow> merge_sizes(const std::vector<Row>& rows, bool keep_sizes = false);

/// All sums over the rows of one rank's step.
struct Volume {
  std::map<std::string_view, Total> by_group;
  Total all;
  std::vector<Bin> histogram;
  SmallShare small;
};
Volume volume_of(const std::vector<Row>& rows, Count small_limit);

}  // namespace medley::plan

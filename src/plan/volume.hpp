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

}  // namespace medley::plan

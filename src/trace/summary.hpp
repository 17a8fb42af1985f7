// What a rank sent in one step and how long it took, per group, operation and size: the rows that `medley
// trace` shows. They have the fields of a plan's rows, so that both can be compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/steps.hpp"

namespace medley::trace {

/// Equal operations of one step, with their number and their times over all steps.
struct Row {
  Op op = Op::all_reduce;
  std::uint32_t group = 0;
  std::int64_t bytes = 0;
  std::int64_t count = 0;  ///< in one step
  DType dtype = DType::u8;
  bool sized = true;          ///< false: the source gives no bytes
  std::string phase, module;  ///< empty when no scope gives it
  std::string backend, algorithm;
  std::int64_t timed = 0;  ///< completed operations that the times are from, over all steps
  // Times of the kernel or the transfer, over the operations of all steps. Sums are `count` times the mean, so that
  // they are of the same step as `count`, whatever the other steps hold.
  double total_us = 0;
  double exposed_us = 0;      ///< in which the program only waited; more than the total if it also waited for the start
  bool exposed_known = true;  ///< false: of some of them it was not recorded; `exposed_us` is then of no use
  double median_us = 0, p99_us = 0;
  bool exposed() const { return total_us == 0 || exposed_us > total_us / 2; }
};

struct Summary {
  int rank = 0;
  Steps steps;
  std::size_t typical = 0;  ///< the most common step, or the one asked for; counts
                            ///< are of this one
  std::size_t unlike = 0;   ///< steps with different operations
  std::vector<Row> rows;    ///< in order of first issue in the typical step
  double step_us = 0;       ///< median time from the first issue to the last completion of a step
  double wire(const Row& row, const Trace& trace) const;
};

/// What one step sends in a group.
struct Total {
  std::int64_t bytes = 0, count = 0;
  double wire_bytes = 0, us = 0, exposed_us = 0;
  bool exposed_known = true;  ///< of all its rows
};
/// By name of the group.
std::map<std::string, Total> totals_of(const std::vector<Row>& rows, const Trace& trace);

/// Operations and bytes of a step by size; operations without bytes, such as barriers, are left out.
struct Sizes {
  struct Bin {
    std::int64_t count = 0, bytes = 0;
  };
  std::map<std::int64_t, Bin> histogram;  ///< by the power of two that the size reaches
  std::int64_t small = 0;                 ///< sizes up to this count as small
  std::int64_t count = 0;
  double small_share_of_count = 0, small_share_of_bytes = 0;
};
Sizes sizes_of(const std::vector<Row>& rows, std::int64_t small);

/// Rows that differ in scope, type or algorithm alone become one; a module that is not the same for all is
/// "…".
std::vector<Row> merged(const std::vector<Row>& rows);

/// The summary of one rank; its counts are those of the most common step, or of `step`, counted from 1.
Summary summarise(const Trace& trace, const RankTrace& rank, const Steps& steps, std::size_t step = 0);

/// The rank that put the most bytes on the wire.
const RankTrace& busiest(const Trace& trace);

}  // namespace medley::trace

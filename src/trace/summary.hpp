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
  bool sized = true;  ///< false: the source gives no bytes
  std::string phase, module;  ///< empty when no scope gives it
  std::string backend, algorithm;
  std::int64_t timed = 0;  ///< completed operations that the times are from, over all steps
  double total_us = 0;     ///< per step
  double exposed_us = 0;   ///< the part in which the program only waited
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

/// The summary of one rank; its counts are those of the most common step, or of `step`, counted from 1.
Summary summarise(const Trace& trace, const RankTrace& rank, const Steps& steps, std::size_t step = 0);

/// The rank that put the most bytes on the wire.
const RankTrace& busiest(const Trace& trace);

}  // namespace medley::trace

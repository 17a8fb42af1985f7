// What a rank sent in one step and how long it took, per group, operation and size: the rows that `medley
// trace` shows, with the fields of a plan's rows, so that both can be laid side by side.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/steps.hpp"

namespace medley::trace {

/// Operations of one step that differ in nothing but place, with how often they occur and their times over
/// all steps.
struct Row {
  Op op = Op::all_reduce;
  std::uint32_t group = 0;
  std::int64_t bytes = 0;
  std::int64_t count = 0;  ///< in one step
  DType dtype = DType::u8;
  bool sized = true;  ///< false: the source does not say how many bytes
  std::string phase, module;  ///< empty where no scope said so
  std::string backend, algorithm;
  std::int64_t timed = 0;  ///< completed operations behind the times, over all steps
  double total_us = 0;     ///< per step
  double exposed_us = 0;   ///< of it, the program did nothing but wait
  double median_us = 0, p99_us = 0;
  bool exposed() const { return total_us == 0 || exposed_us > total_us / 2; }
};

struct Summary {
  int rank = 0;
  Steps steps;
  std::size_t typical = 0;  ///< the step whose operations are most common, or the one asked for; counts
                            ///< are of this one
  std::size_t unlike = 0;   ///< steps with other operations
  std::vector<Row> rows;    ///< in order of first issue in the typical step
  double step_us = 0;       ///< median time from the first issue to the last completion of a step
  double wire(const Row& row, const Trace& trace) const;
};

/// The summary of one rank; its counts are of the step most others are like, or of `step`, from 1 on.
Summary summarise(const Trace& trace, const RankTrace& rank, const Steps& steps, std::size_t step = 0);

/// The rank that put the most bytes on the wire.
const RankTrace& busiest(const Trace& trace);

}  // namespace medley::trace

// Everything `medley trace` says about a trace, as one value: the rows of a step, totals by group, sizes,
// what did not end well, who came late, the layout behind it.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trace/infer_layout.hpp"
#include "trace/problems.hpp"
#include "trace/skew.hpp"
#include "trace/summary.hpp"

namespace medley::trace {

struct ReportRequest {
  std::string path;                ///< as open_trace() takes it
  int rank = -1;                   ///< whose step is shown; -1: the busiest rank's
  std::size_t steps = 0;           ///< in the trace; 0: they are found
  std::int64_t small = 64 * 1024;  ///< up to which size a message counts as small
};

struct Report {
  Trace trace;
  Summary summary;                      ///< of one rank
  std::map<std::string, Total> totals;  ///< by name of the group
  Sizes sizes;
  Problems problems;
  std::vector<Skew> skew;
  InferredLayout layout;
  std::vector<std::string> remarks() const;  ///< the reader's, on the trace and on each rank
};

Report make_report(const ReportRequest& request);

nlohmann::ordered_json to_json(const Report& report);

}  // namespace medley::trace

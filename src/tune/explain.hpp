// Which route a table gives an operation, the runners-up and why. Behind `medley explain`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "route/table.hpp"

namespace medley::tune {

struct ExplainRequest {
  Op op{};
  std::int64_t bytes = 0;    ///< of the whole tensor
  int ranks = 1, hosts = 1;  ///< of the comm
  Memory memory = Memory::host;
  DType dtype = DType::f32;
  std::vector<std::string> backends{};  ///< that the job has; empty: all of the table
  bool exact = false;                   ///< of sends: the comm declares exact message sizes
  std::string allow{};                  ///< the codecs that a rule allows `auto`, such as "int8,bf16" or "error:0.01"
};

/// A route of the row that decides.
struct ExplainedRoute {
  route::Timing timing;
  double slower = 1;  ///< its time over that of the route taken
  bool taken = false;
};

struct Explanation {
  ExplainRequest asked;
  route::DTypeClass dtype{};  ///< of what was asked
  route::Shape shape{};
  std::string table_hash, measured_on;  ///< the table, and the CPU it was measured on
  bool found = false;                   ///< false: the table has no row for it, and the built-in order decides
  // The rest only where a row was found.
  Choice route{};
  std::int64_t from = 0, to = 0;  ///< sizes for which this route holds
  std::vector<std::string> why{};
  // And these where the operation was measured alone: a step's library carries operations that were not.
  std::int64_t row_bytes = 0;  ///< the row nearest in size
  route::Shape row_shape{};
  double confidence = 0;                 ///< that its first route is the fastest
  std::vector<ExplainedRoute> routes{};  ///< fastest first
};

/// Throws Error(invalid) when the ranks do not fit the hosts.
Explanation explain(const route::Table& table, const ExplainRequest& request);

nlohmann::ordered_json to_json(const Explanation& explanation);

}  // namespace medley::tune

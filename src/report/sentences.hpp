// One sentence per topic of the report, from the data of a run; nothing where the run has none.
#pragma once

#include <optional>
#include <string>

#include "report/fields.hpp"

namespace medley::report {

struct Finding {
  int weight = 0;  ///< larger: more important
  std::string section, sentence;
};

std::optional<Finding> about_problems(const Json& run);
std::optional<Finding> about_reconcile(const Json& run);
std::optional<Finding> about_steps(const Json& run);
std::optional<Finding> about_tuned_steps(const Json& run);
std::optional<Finding> about_waits(const Json& run);
std::optional<Finding> about_traces(const Json& run);
std::optional<Finding> about_shapes(const Json& run);
std::optional<Finding> about_routes(const Json& run);
std::optional<Finding> about_replays(const Json& run);
std::optional<Finding> about_searches(const Json& run);
std::optional<Finding> about_plans(const Json& run);

}  // namespace medley::report

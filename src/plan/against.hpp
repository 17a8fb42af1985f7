// The plan of one rank beside an AICB workload file. Used by `medley plan --against`.
#pragma once

#include <nlohmann/json.hpp>

#include "plan/aicb.hpp"
#include "plan/request.hpp"

namespace medley::plan {

struct AgainstRequest : StepRequest {
  Count rank = 0;
  std::string list;  ///< path of the CSV file
};

struct AgainstResult {
  std::string list;
  Count rank = 0;
  Comparison comparison;
};

/// Throws Error(invalid) for frameworks that AICB does not mock.
AgainstResult compare_with_list(const AgainstRequest& request);
nlohmann::ordered_json to_json(const AgainstResult& result);

}  // namespace medley::plan

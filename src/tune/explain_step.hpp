// What each operation of a step takes by a table, what that buys against the best single library, and how sure that is.
// Behind `medley explain --step`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "route/table.hpp"
#include "tune/step.hpp"

namespace medley::tune {

/// One kind of operation of the step.
struct ExplainedOperation {
  StepOperation operation;
  std::optional<Choice> route{};  ///< none: the table says nothing about it, and the built-in order decides
  bool by_step = false;           ///< chosen on the running step; false: by operations alone
  // From the nearest row of operations alone; 0 where there is none.
  double alone_us = 0, library_us = 0;  ///< over its route; over the best library's own algorithm
  double confidence = 0;                ///< that the faster of the two is the faster one
  bool same_as_library = false;         ///< the route is the best library's own
};

struct StepExplanation {
  std::string name, table_hash, measured_on;
  std::string library;  ///< the best single library
  /// It was the best on the running step; false: by the sum of its operations alone
  bool library_by_step = false;
  std::vector<ExplainedOperation> operations{};
  std::optional<route::TunedStep> tuned{};  ///< the step's own times, if the table was tuned for this very step
  std::string note{};                       ///< why there are none
};

/// `operations`: what the step sends; `hash`: its fingerprint.
StepExplanation explain_step(const route::Table& table, const std::string& name,
                             const std::vector<StepOperation>& operations, const std::string& hash, Memory memory);

nlohmann::ordered_json to_json(const StepExplanation& explanation);

}  // namespace medley::tune

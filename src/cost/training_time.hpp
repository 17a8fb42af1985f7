// How long training on a number of tokens takes, one predicted step after another. Used by `medley plan --tokens`, its
// sweeps and its search.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cost/words.hpp"

namespace medley::cost {

struct TrainingTime {
  double tokens = 0;
  double steps = 0;  ///< whole ones
  double days = 0;   ///< of computing: restarts, checkpoints and evaluation come on top
  double gpu_hours = 0;
};

/// `layout` must have passed check(). Throws Error(invalid) for a layout that does not train.
TrainingTime training_time(const Layout& layout, double step_us, double tokens);

/// A number of tokens such as 300B, 1.5T or 2e12; K, M, B and T are powers of 1000. Throws Error(invalid) naming `option`.
double parse_tokens(const std::string& text, const std::string& option);
/// The same the other way: 300B.
std::string tokens_text(double tokens);

nlohmann::ordered_json to_json(const TrainingTime& time);

}  // namespace medley::cost

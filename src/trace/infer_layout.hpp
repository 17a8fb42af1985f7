// The parallel layout behind a trace, guessed from which ranks communicate, by what and how often, with the
// evidence for each part. Used by `medley trace` where nobody says how a job was laid out.
#pragma once

#include <string>
#include <vector>

#include "trace/steps.hpp"

namespace medley::trace {

struct InferredLayout {
  int dp = 1, tp = 1, pp = 1, ep = 1;
  int zero = 0;  ///< 1: also stage 2, which sends the same; 3: also FSDP
  bool sp = false;
  bool complete = false;  ///< dp·tp·pp is the number of ranks
  std::vector<std::string> evidence;
  /// "dp=4,tp=2", as --layout takes it; empty: nothing is known.
  std::string text() const;
};

InferredLayout infer_layout(const Trace& trace);

}  // namespace medley::trace

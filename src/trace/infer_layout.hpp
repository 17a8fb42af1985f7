// Infers the parallel layout of a trace from which ranks communicate, with which operations and how often,
// and gives the evidence for each part. Used by `medley trace` when the layout is not given.
#pragma once

#include <string>
#include <vector>

#include "trace/steps.hpp"

namespace medley::trace {

struct InferredLayout {
  int dp = 1, tp = 1, pp = 1, ep = 1;
  int zero = 0;  ///< 1 includes stage 2, which sends the same; 3 includes FSDP
  bool sp = false;
  bool complete = false;              ///< dp·tp·pp is the number of ranks; otherwise the parts contradict each other
  std::vector<std::string> evidence;  ///< for each part
  /// "dp=4,tp=2", as --layout takes it; empty: no single layout explains the parts.
  std::string text() const;
};

InferredLayout infer_layout(const Trace& trace);

}  // namespace medley::trace

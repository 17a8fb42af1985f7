// What went wrong in a run, first things first: operations that failed or never completed, who did not get
// there, and ranks that called different things. In the terms of PyTorch's flight recorder: collective
// number, state, ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

struct Problem {
  std::string kind;                  ///< "failed", "unfinished", "mismatch"
  Event event;                       ///< as one of the ranks recorded it
  std::map<int, std::string> ranks;  ///< by rank: "complete", "started", …, "not issued"
  std::string sentence;
};

struct Problems {
  std::vector<Problem> list;  ///< mismatches first, then by the time at which they were issued
  std::size_t left_out = 0;   ///< more of the same
};

Problems find_problems(const Trace& trace, std::size_t most = 50);

}  // namespace medley::trace

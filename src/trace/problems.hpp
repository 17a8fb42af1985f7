// Problems of a run, the most important first: operations that failed or never completed, ranks that did not
// arrive, and desyncs, where ranks called different operations. In the terms of PyTorch's flight recorder:
// collective number, state, ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/trace.hpp"

namespace medley::trace {

struct Problem {
  std::string kind;                  ///< "failed", "unfinished", "mismatch"
  Event event;                       ///< as most of the ranks recorded it
  std::map<int, std::string> ranks;  ///< by rank: "complete", "started", …, "not issued"
  /// Ranks that did not call it, or called something else than most; empty: not known
  std::vector<int> at_fault;
  std::vector<int> waiting;  ///< ranks whose program waits in it
  std::string sentence;
};

struct Problems {
  std::vector<Problem> list;  ///< mismatches first, then by time of issue
  std::size_t left_out = 0;   ///< further problems of the same kind
};

Problems find_problems(const Trace& trace, std::size_t most = 50);

}  // namespace medley::trace

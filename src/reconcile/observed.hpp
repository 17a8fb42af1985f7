// The observed side: what each rank of a trace issued, step by step. Equal steps of a rank are stored once.
#pragma once

#include <string>
#include <vector>

#include "reconcile/kinds.hpp"
#include "trace/steps.hpp"

namespace medley::reconcile {

/// Which part of a trace is compared.
struct Selection {
  int rank = -1;          ///< -1: every rank
  std::size_t steps = 0;  ///< in the trace; 0: detect them
  std::size_t step = 0;   ///< only this one, counted from 1; 0: all
  std::size_t skip = 0;   ///< leave out this many at the start
};

/// Identical steps of one rank.
struct Variant {
  Sequence sequence;
  std::vector<std::size_t> steps;  ///< counted from 1
};

struct ObservedRank {
  int rank = 0;
  std::size_t steps = 0;     ///< in the trace
  std::string found_by;      ///< as trace::Steps
  std::int64_t repeats = 1;  ///< steps that the one sequence sums up, where a log has only sums
  std::int64_t outside = 0;  ///< operations before the first step and after the last
  std::int64_t outside_bytes = 0;
  std::int64_t unfinished = 0;       ///< operations that failed or never completed
  bool ordered = true;               ///< whether the source has the order of issue
  std::vector<std::string> remarks;  ///< from the reader: truncated, disk full
  std::vector<Variant> variants;     ///< the most common one first
};

std::vector<ObservedRank> observed_ranks(const trace::Trace& trace, const Selection& selection,
                                         Fields ignored, Catalog& catalog);

}  // namespace medley::reconcile

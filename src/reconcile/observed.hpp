// The observed side: what each rank of a trace issued, step by step. Equal steps of a rank are kept once.
#pragma once

#include <string>
#include <vector>

#include "reconcile/kinds.hpp"
#include "trace/steps.hpp"

namespace medley::reconcile {

/// Which part of a trace is compared.
struct Selection {
  int rank = -1;          ///< -1: every rank
  std::size_t steps = 0;  ///< that the trace holds; 0: they are found
  std::size_t step = 0;   ///< only this one, from 1 on; 0: all
  std::size_t skip = 0;   ///< leave out the first ones
};

/// Steps of one rank that do exactly the same.
struct Variant {
  Sequence sequence;
  std::vector<std::size_t> steps;  ///< from 1 on
};

struct ObservedRank {
  int rank = 0;
  std::size_t steps = 0;     ///< in the trace
  std::string found_by;      ///< as trace::Steps
  std::int64_t repeats = 1;  ///< steps that the one sequence sums up, where a log has only sums
  std::int64_t outside = 0;  ///< operations before the first step and behind the last
  std::int64_t outside_bytes = 0;
  std::int64_t unfinished = 0;       ///< operations that failed or never completed
  bool ordered = true;               ///< the source says in which order they were issued
  std::vector<std::string> remarks;  ///< the reader's: cut off, disk full
  std::vector<Variant> variants;     ///< the most common one first
};

std::vector<ObservedRank> observed_ranks(const trace::Trace& trace, const Selection& selection,
                                         Fields ignored, Catalog& catalog);

}  // namespace medley::reconcile

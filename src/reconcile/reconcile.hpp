// Expected against observed: compares every rank and every step of a run with its plan, and explains differences by the
// hypothesis about the whole run that predicts them to the byte. Used by `medley reconcile`.
#pragma once

#include <string>
#include <vector>

#include "reconcile/compare.hpp"
#include "reconcile/expectation.hpp"
#include "reconcile/observed.hpp"

namespace medley::reconcile {

struct Options {
  Selection selection;
  Fields ignored;               ///< not compared, and not reported where a source lacks them
  bool ignore_ranks = false;    ///< ranks without a trace are not reported
  bool ignore_outside = false;  ///< operations outside the steps are not reported
};

/// Identical steps of one rank, against the plan.
struct StepsResult {
  std::vector<std::size_t> steps;  ///< from 1 on
  std::vector<Line> lines;         ///< differences first
};

struct RankResult {
  int rank = 0;
  std::size_t steps = 0;  ///< in the trace
  std::vector<StepsResult> results;
};

/// Something about the run that no row shows: a rank without a trace, a field that the source lacks.
struct Finding {
  std::string kind;  ///< "missing rank", "unknown field", "steps", "unfinished", "outside", "cut off"
  std::string sentence;
};

/// The hypothesis that explains differences, with what it predicted.
struct Explanation {
  std::string sentence;
  int parameters = 0;          ///< free ones
  std::int64_t predicted = 0;  ///< rows that it changes; all of them match, on every rank and in every step
};

struct Report {
  Catalog catalog;
  std::vector<RankResult> ranks;
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< what was not compared, where the program itself says so; no differences
  std::vector<Explanation> explanations;
  std::vector<Explanation> suggestions;  ///< would explain everything, but predict too little to count as causes
  std::size_t matched() const;           ///< rows, over all ranks
  std::size_t differences() const;       ///< rows that differ and findings
  std::size_t unexplained() const;       ///< those of them without a cause
};

Report reconcile(const trace::Trace& trace, const Expectation& expectation, const Options& options);

}  // namespace medley::reconcile

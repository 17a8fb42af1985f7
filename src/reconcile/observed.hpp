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
  /// Operations before the first step, after the last, and under the scope that separates steps
  std::int64_t outside = 0;
  std::int64_t outside_bytes = 0;
  std::int64_t unfinished = 0;       ///< operations that failed or never completed
  bool ordered = true;               ///< whether the source has the order of issue
  std::vector<std::string> remarks;  ///< from the reader: truncated, disk full
  std::vector<Variant> variants;     ///< the most common one first
};

/// Numbers the operations of a trace in a catalog.
class ObservedKinds {
 public:
  /// The trace and the catalog must outlive this object.
  ObservedKinds(const trace::Trace& trace, Fields ignored, Catalog& catalog);
  std::uint32_t number_of(const trace::Event& event);
  /// False for operations that are not compared: those that separate steps, and those of a single rank.
  bool counts(const trace::Event& event) const;

 private:
  const trace::Trace& trace_;
  Fields ignored_;
  Catalog& catalog_;
  std::vector<std::uint32_t> groups_;
};

/// The selected steps of one rank. Throws Error(invalid) when the selection names a step that the rank does not have.
struct SelectedSteps {
  std::vector<std::pair<std::size_t, trace::Step>> steps;  ///< each with its number, from 1 on
  trace::Steps all;                                        ///< as found in the trace
  std::int64_t repeats = 1;                                ///< as in ObservedRank
  std::size_t count() const { return repeats > 1 ? static_cast<std::size_t>(repeats) : all.steps.size(); }
};
SelectedSteps select_steps(const trace::Trace& trace, const trace::RankTrace& rank, const Selection& selection);

std::vector<ObservedRank> observed_ranks(const trace::Trace& trace, const Selection& selection, Fields ignored,
                                         Catalog& catalog);

}  // namespace medley::reconcile

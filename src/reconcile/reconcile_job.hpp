// Compares a trace with what was expected, starting from the files: what `medley reconcile` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconcile/reconcile.hpp"
#include "reconcile/time.hpp"

namespace medley::reconcile {

struct ReconcileRequest {
  std::string trace;           ///< as trace::open_trace() takes it
  std::string schedule{};      ///< what was expected: the file, or
  std::optional<Plan> plan{};  ///< a plan
  double scale = 1;            ///< of the schedule's sizes, as in medley replay
  // Either makes times be compared, too.
  std::string machine{};  ///< as cost::find_machine() takes it: times on its links
  std::string table{};    ///< a route table's file: times of its routes
  Options options{};
};

struct ReconcileResult {
  trace::Trace trace;
  Report report;
  std::optional<TimeReport> time{};  ///< with a machine or a table
};

/// Adds what a word of --ignore names: a field, "ranks" or "outside". Throws Error(invalid) for any other word.
void ignore(const std::string& word, Options& options);

/// Throws Error(invalid) when no expectation is given, or when it has a different number of ranks than the trace.
ReconcileResult run_reconcile(const ReconcileRequest& request);

/// Ranks whose steps differ from their plans in the same way.
struct AlikeRanks {
  std::vector<int> ranks;
  const RankResult* first = nullptr;  ///< the result of the first of them, inside the report
};

/// In order of their first ranks. `all_rows`: matched rows must be equal, too. The report must outlive the result.
std::vector<AlikeRanks> alike_ranks(const Report& report, bool all_rows);

}  // namespace medley::reconcile

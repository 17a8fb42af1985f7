// Expected against observed, row by row: what a plan or schedule says one rank sends in a step, beside what
// its trace says it sent. Groups are compared by their ranks, so names need not agree.
#pragma once

#include <string>
#include <vector>

#include "plan/framework.hpp"
#include "replay/schedule_file.hpp"
#include "trace/summary.hpp"

namespace medley::reconcile {

/// Operations that both sides count as one: of one kind, on one set of ranks, of one size.
struct Item {
  Op op = Op::all_reduce;  ///< v-forms count as their even forms
  std::vector<int>
      ranks;  ///< of the group; empty: not known. Messages have none: who sends to whom is in the pair
  std::string group;  ///< its name, of the plan where it has one
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  DType dtype = DType::u8;
  std::vector<std::string> why;  ///< expected: the plan's reasons; observed: where in the program
  bool uneven = false;           ///< observed as a v-form
};
using Items = std::vector<Item>;

Items expected_items(const plan::Schedule& schedule, const plan::Layout& layout, plan::Count rank);
Items expected_items(const replay::RankSchedule& schedule, double scale);
/// Of the trace's typical step.
Items observed_items(const trace::Trace& trace, const trace::Summary& summary);

enum class Verdict : std::uint8_t { matched, missing, extra, count, size };
std::string_view name(Verdict verdict) noexcept;

/// One row of the comparison; the side that is not there has count 0.
struct Line {
  Verdict verdict = Verdict::matched;
  Item expected, observed;
  std::string cause;  ///< of a difference; empty: none is known
};

struct Result {
  int rank = 0;
  std::vector<Line> lines;
  std::size_t differences() const;
  std::size_t unexplained() const;
};

/// Lays them side by side. Causes are found by explain().
Result compare(const Items& expected, const Items& observed, int rank);

}  // namespace medley::reconcile

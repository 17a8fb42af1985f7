// How `medley plan --against LIST.csv` shows a plan beside an AICB workload.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/plan.hpp"

namespace medley::cli {

void print_against(const plan::AgainstResult& result) {
  const plan::Comparison& comparison = result.comparison;
  fmt::print("rank {} of the plan against {}\n\nthe same in operation, group, bytes and count: {}\n", result.rank,
             result.list, comparison.agree.empty() ? "nothing" : fmt::format("{}", fmt::join(comparison.agree, ", ")));
  for (const plan::Difference& d : comparison.differ) {
    fmt::print("\n{}\n  plan:  {}\n  list:  {}\n  cause: {}\n", d.purpose, plan::text_of(d.ours),
               plan::text_of(d.theirs), d.cause.empty() ? "NOT EXPLAINED" : d.cause);
  }
  if (!comparison.notes.empty()) fmt::print("\n");
  for (const std::string& note : comparison.notes) fmt::print("note: {}\n", note);
  fmt::print("\n{}\n", comparison.explained() ? "every difference has a cause" : "some differences have no cause");
}

}  // namespace medley::cli

#include "reconcile/reconcile.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <medley/error.hpp>
#include <set>

#include "base/ranks_text.hpp"
#include "reconcile/explain.hpp"

namespace medley::reconcile {
namespace {

void find_missing_ranks(const std::vector<ObservedRank>& observed, int world, Report& report) {
  std::set<int> seen;
  for (const ObservedRank& rank : observed) seen.insert(rank.rank);
  std::vector<int> missing;
  for (int rank = 0; rank < world; ++rank)
    if (!seen.contains(rank)) missing.push_back(rank);
  if (missing.empty()) return;
  report.findings.push_back({"missing rank", fmt::format("there is no trace of {} of {}: {}", missing.size(), world,
                                                         core::ranks_text(missing))});
}

/// Ranks of one job run the same steps.
void find_step_counts(const std::vector<ObservedRank>& observed, Report& report) {
  std::map<std::size_t, std::vector<int>> by_steps;
  for (const ObservedRank& rank : observed) by_steps[rank.steps].push_back(rank.rank);
  if (by_steps.size() < 2) return;
  std::vector<std::string> parts;
  for (const auto& [steps, ranks] : by_steps)
    parts.push_back(fmt::format("{} step{} on {}", steps, steps == 1 ? "" : "s", core::ranks_text(ranks)));
  report.findings.push_back(
      {"steps", fmt::format("ranks have different numbers of steps: {}", fmt::join(parts, ", "))});
}

/// What a program leaves out by marking its steps is no difference, but whoever trusts the verdict must know it.
void note_outside(const std::vector<ObservedRank>& observed, Report& report) {
  std::int64_t operations = 0, bytes = 0;
  std::vector<int> ranks;
  for (const ObservedRank& rank : observed) {
    if (rank.outside == 0 || rank.found_by == "period") continue;
    operations += rank.outside;
    bytes += rank.outside_bytes;
    ranks.push_back(rank.rank);
  }
  if (ranks.empty()) return;
  report.notes.push_back(fmt::format("{} operations ({} B) of {} are outside the marked steps and were not compared",
                                     operations, bytes, core::ranks_text(ranks)));
}

void find_about_ranks(const std::vector<ObservedRank>& observed, const Options& options, Report& report) {
  for (const ObservedRank& rank : observed) {
    if (rank.unfinished > 0)
      report.findings.push_back(
          {"unfinished", fmt::format("rank {}: {} operations failed or never completed", rank.rank, rank.unfinished)});
    for (const std::string& remark : rank.remarks)
      report.findings.push_back({"incomplete", fmt::format("rank {}: {}", rank.rank, remark)});
    // Steps between marks are explicit in the program; steps found by their period are a guess, and what they leave out
    // may be a step that differs.
    if (rank.outside > 0 && rank.found_by == "period" && !options.ignore_outside) {
      report.findings.push_back(
          {"outside", fmt::format("rank {}: {} operations ({} B) are outside the steps that were found by their "
                                  "period; --skip or --steps says which ones count, --ignore outside leaves them out",
                                  rank.rank, rank.outside, rank.outside_bytes)});
    }
  }
}

/// Fields that the source, or the plan, lacks for some of the compared operations.
void find_unknown_fields(const std::vector<Case>& cases, Fields ignored, Report& report) {
  std::map<Field, std::set<std::string>> ops;
  bool unordered = false;
  for (const Case& c : cases) {
    unordered = unordered || !c.observed->ordered;
    for (const Sequence* side : {&c.expected, &c.variant->sequence}) {
      for (const Run& run : *side) {
        const Kind& kind = report.catalog[run.kind];
        for (int i = 0; !kind.unknown.empty() && i < trace::field_count; ++i) {
          const auto field = static_cast<Field>(i);
          if (kind.unknown.has(field)) ops[field].insert(std::string(medley::name(kind.op)));
        }
      }
    }
  }
  for (const auto& [field, names] : ops) {
    if (ignored.has(field)) continue;
    if (field == Field::rounding && ops.contains(Field::bytes)) continue;
    report.findings.push_back(
        {"unknown field",
         fmt::format(
             "{} is unknown for {}: {}; --ignore {} compares without it", trace::name(field), fmt::join(names, ", "),
             field == Field::rounding ? "the source rounds sizes" : "the source does not say it", trace::name(field))});
  }
  if (unordered && !ignored.has(Field::order))
    report.findings.push_back(
        {"unknown field", "order is unknown: the source has sums only; --ignore order compares without it"});
}

std::int64_t row_bytes_of(const Expectation& expectation) {
  if (!expectation.plan()) return 1;
  return expectation.plan()->model.hidden * expectation.plan()->layout.element_bytes();
}

}  // namespace

Report reconcile(const trace::Trace& trace, const Expectation& expectation, const Options& options) {
  Report report;
  Catalog& catalog = report.catalog;
  std::map<int, Sequence> planned;  // first, so that groups get the plan's names
  const int world = std::max(expectation.world(), trace.world);
  for (const trace::RankTrace& rank : trace.ranks) {
    if (options.selection.rank >= 0 && rank.rank != options.selection.rank) continue;
    if (rank.rank >= expectation.world())
      throw Error(ErrorKind::invalid, fmt::format("{}: it is of rank {}, what was expected has {} ranks", rank.file,
                                                  rank.rank, expectation.world()));
    if (!planned.contains(rank.rank)) planned[rank.rank] = expectation.of(rank.rank, catalog, options.ignored);
  }
  const std::vector<ObservedRank> observed = observed_ranks(trace, options.selection, options.ignored, catalog);
  if (!options.ignore_ranks && options.selection.rank < 0) find_missing_ranks(observed, world, report);
  find_step_counts(observed, report);
  find_about_ranks(observed, options, report);
  note_outside(observed, report);
  std::vector<Case> cases;
  report.ranks.reserve(observed.size());
  for (const ObservedRank& rank : observed) {
    RankResult& result = report.ranks.emplace_back();
    result.rank = rank.rank;
    result.steps = rank.steps;
    result.results.resize(rank.variants.size());
    Sequence expected = planned.at(rank.rank);
    for (Run& run : expected) run.count *= rank.repeats;
    for (std::size_t v = 0; v < rank.variants.size(); ++v) {
      StepsResult& steps = result.results[v];
      steps.steps = rank.variants[v].steps;
      const bool order = rank.ordered && !options.ignored.has(Field::order);
      steps.lines = compare(catalog, expected, rank.variants[v].sequence, order).lines;
      cases.push_back({rank.rank, expected, order, &rank, &rank.variants[v], &steps});
    }
  }
  find_unknown_fields(cases, options.ignored, report);
  const bool differs = std::any_of(cases.begin(), cases.end(), [](const Case& c) {
    return std::any_of(c.result->lines.begin(), c.result->lines.end(), [](const Line& l) { return l.differs(); });
  });
  if (differs && expectation.plan()) explain_by_settings(*expectation.plan(), options, cases, report);
  if (differs) explain_by_routing(row_bytes_of(expectation), cases, report);
  return report;
}

std::size_t Report::matched() const {
  std::size_t out = 0;
  for (const RankResult& rank : ranks)
    for (const StepsResult& steps : rank.results)
      for (const Line& line : steps.lines) out += !line.differs();
  return out;
}

std::size_t Report::differences() const {
  std::size_t out = findings.size();
  for (const RankResult& rank : ranks)
    for (const StepsResult& steps : rank.results)
      for (const Line& line : steps.lines) out += line.differs();
  return out;
}

std::size_t Report::unexplained() const {
  std::size_t out = findings.size();
  for (const RankResult& rank : ranks)
    for (const StepsResult& steps : rank.results)
      for (const Line& line : steps.lines) out += line.differs() && line.cause.empty();
  return out;
}

}  // namespace medley::reconcile

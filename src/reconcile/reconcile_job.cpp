#include "reconcile/reconcile_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/error.hpp>

#include "model/read_layout.hpp"

namespace medley::reconcile {
namespace {

Expectation expectation_of(const ReconcileRequest& request, int world) {
  if (!request.schedule.empty()) return {replay::read_schedule(request.schedule), request.scale, world};
  if (!request.plan)
    throw Error(ErrorKind::invalid, "--model and --layout, or --schedule, say what was expected; none is given");
  Plan plan = *request.plan;
  plan::check(plan.layout, plan.model);
  if (world > 0 && plan.layout.world() != world)
    throw Error(ErrorKind::invalid,
                fmt::format("--layout has {} ranks, the trace is of {}", plan.layout.world(), world));
  return Expectation(std::move(plan));
}

std::vector<Line> shown(const StepsResult& steps, bool all_rows) {
  std::vector<Line> lines = steps.lines;
  if (!all_rows) std::erase_if(lines, [](const Line& line) { return !line.differs(); });
  return lines;
}

bool alike(const RankResult& a, const RankResult& b, bool all_rows) {
  return a.steps == b.steps && a.results.size() == b.results.size() &&
         std::equal(a.results.begin(), a.results.end(), b.results.begin(),
                    [&](const StepsResult& x, const StepsResult& y) {
                      return x.steps == y.steps && x.lines.size() == y.lines.size() &&
                             shown(x, all_rows) == shown(y, all_rows);
                    });
}

}  // namespace

void ignore(const std::string& word, Options& options) {
  if (word == "ranks") {
    options.ignore_ranks = true;
  } else if (word == "outside") {
    options.ignore_outside = true;
  } else if (const auto field = trace::parse_field(word)) {
    options.ignored.add(*field);
  } else {
    throw Error(ErrorKind::invalid,
                fmt::format("--ignore {}: it must be one of group, bytes, dtype, reduce, root, phase, async, "
                            "order, rounding, ranks, outside",
                            word));
  }
}

ReconcileResult run_reconcile(const ReconcileRequest& request) {
  trace::Trace trace = trace::open_trace(request.trace);
  const int rank = request.options.selection.rank;
  if (rank >= 0) static_cast<void>(trace.rank(rank));  // throws if there is no such rank
  std::optional<cost::Machine> machine;
  if (!request.machine.empty()) machine = cost::find_machine(request.machine);
  std::optional<route::Table> table;
  if (!request.table.empty()) table = route::Table::load(request.table);
  const Expectation expectation = expectation_of(request, trace.world);
  Report report = reconcile(trace, expectation, request.options);
  std::optional<TimeReport> time;
  if (machine || table)
    time = compare_times(trace, expectation, request.options.selection, request.options.ignored,
                         TimeModel(trace, std::move(machine), std::move(table), request.table));
  return {std::move(trace), std::move(report), std::move(time)};
}

std::vector<AlikeRanks> alike_ranks(const Report& report, bool all_rows) {
  std::vector<AlikeRanks> out;
  for (const RankResult& rank : report.ranks) {
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const AlikeRanks& group) { return alike(*group.first, rank, all_rows); });
    AlikeRanks& group = same != out.end() ? *same : out.emplace_back(AlikeRanks{{}, &rank});
    group.ranks.push_back(rank.rank);
  }
  return out;
}

}  // namespace medley::reconcile

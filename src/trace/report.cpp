#include "trace/report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trace/export.hpp"

namespace medley::trace {
namespace {

nlohmann::ordered_json decisions_json(const Trace& trace) {
  auto list = nlohmann::ordered_json::array();
  for (const RouteDecision& one : trace.decisions) {
    list.push_back({{"comm", one.comm},
                    {"sequence", one.sequence},
                    {"op", medley::name(one.op)},
                    {"from_bytes", one.from_bytes},
                    {"to_bytes", one.to_bytes},
                    {"changed", one.changed},
                    {"from", one.from},
                    {"to", one.to},
                    {"reason", one.reason}});
  }
  return list;
}

}  // namespace

std::vector<std::string> Report::remarks() const {
  std::vector<std::string> out = trace.remarks;
  for (const RankTrace& rank : trace.ranks) {
    for (const std::string& remark : rank.remarks) out.push_back(fmt::format("rank {}: {}", rank.rank, remark));
  }
  return out;
}

Report make_report(const ReportRequest& request) {
  Report report{.trace = open_trace(request.path),
                .summary = {},
                .totals = {},
                .sizes = {},
                .problems = {},
                .skew = {},
                .layout = {}};
  const Trace& t = report.trace;
  const RankTrace& rank = request.rank >= 0 ? t.rank(request.rank) : busiest(t);
  report.summary = summarise(t, rank, find_steps(t, rank, request.steps));
  report.totals = totals_of(report.summary.rows, t);
  report.sizes = sizes_of(report.summary.rows, request.small);
  report.problems = find_problems(t);
  report.skew = find_skew(t);
  report.layout = infer_layout(t);
  return report;
}

nlohmann::ordered_json to_json(const Report& report) {
  const Trace& t = report.trace;
  const Summary& s = report.summary;
  const InferredLayout& layout = report.layout;
  nlohmann::ordered_json out = {{"source", t.source},
                                {"format", t.format},
                                {"world", t.world},
                                {"ranks_traced", t.ranks.size()},
                                {"rank", s.rank},
                                {"steps", s.steps.steps.size()},
                                {"steps_found_by", s.steps.found_by},
                                {"steps_unlike", s.unlike},
                                {"step_us", s.step_us},
                                {"rows", to_json(s.rows, t)},
                                {"totals", totals_json(s.rows, t)}};
  out.update(to_json(report.sizes));
  out.update({{"layout", {{"text", layout.text()}, {"complete", layout.complete}, {"evidence", layout.evidence}}},
              {"skew", to_json(report.skew, t)},
              {"problems", to_json(report.problems, t)},
              {"route_decisions", decisions_json(t)},
              {"clock_error_us", t.clock_error / 1e3},
              {"remarks", report.remarks()}});
  return out;
}

}  // namespace medley::trace

#include "reconcile/report_json.hpp"

#include "reconcile/time_json.hpp"

namespace medley::reconcile {
namespace {

using Json = nlohmann::ordered_json;

Json side_json(const Catalog& catalog, std::uint32_t number, std::int64_t count, bool planned) {
  const Kind& kind = catalog[number];
  const auto known = [&](Field field, Json value) { return kind.unknown.has(field) ? Json("unknown") : value; };
  Json out = {{"bytes", kind.bytes}, {"count", count}, {"dtype", known(Field::dtype, medley::name(kind.dtype))}};
  if (reduces(kind.op)) out["reduce"] = known(Field::reduce, medley::name(kind.reduce));
  if (rooted(kind.op) || !is_collective(kind.op))
    out[rooted(kind.op) ? "root" : "peer"] = known(Field::root, kind.root);
  out["phase"] = known(Field::phase, phase_name(kind.phase));
  out["async"] = known(Field::async, kind.async);
  out["why"] = planned ? catalog.reasons(number) : catalog.places(number);
  return out;
}

Json line_json(const Catalog& catalog, const Line& line) {
  const Kind& kind = catalog[line.expected_count > 0 ? line.expected : line.observed];
  const Catalog::Group& group = catalog.group_of(kind);
  Json out = {{"verdict", name(line.verdict)},
              {"op", medley::name(kind.op)},
              {"group", group.name},
              {"group_size", group.ranks.size()},
              {"ranks", group.ranks}};
  out["expected"] = line.expected_count > 0 ? side_json(catalog, line.expected, line.expected_count, true) : Json();
  out["observed"] = line.observed_count > 0 ? side_json(catalog, line.observed, line.observed_count, false) : Json();
  if (!line.differs()) return out;
  Json fields = Json::array();
  for (const Field field : line.fields) fields.push_back(trace::name(field));
  out["fields"] = fields;
  if (!line.detail.empty()) out["detail"] = line.detail;
  out["cause"] = line.cause;
  return out;
}

}  // namespace

Json to_json(const ReconcileResult& result) {
  const Report& report = result.report;
  Json differences = Json::array(), ranks = Json::array(), explanations = Json::array();
  for (const Finding& finding : report.findings)
    differences.push_back({{"verdict", finding.kind},
                           {"op", ""},
                           {"group", ""},
                           {"expected", nullptr},
                           {"observed", nullptr},
                           {"detail", finding.sentence},
                           {"cause", ""}});
  for (const RankResult& rank : report.ranks) {
    std::size_t matched = 0, differing = 0;
    Json rows = Json::array();
    for (const StepsResult& steps : rank.results) {
      for (const Line& line : steps.lines) {
        Json row = {{"rank", rank.rank}, {"steps", steps.steps}};
        row.update(line_json(report.catalog, line));
        (line.differs() ? differing : matched) += 1;
        if (line.differs()) differences.push_back(row);
        rows.push_back(std::move(row));
      }
    }
    ranks.push_back({{"rank", rank.rank},
                     {"steps", rank.steps},
                     {"kinds_of_steps", rank.results.size()},
                     {"matched", matched},
                     {"differences", differing},
                     {"rows", rows}});
  }
  for (const auto& [list, accepted] : {std::pair(&report.explanations, true), std::pair(&report.suggestions, false)}) {
    for (const Explanation& e : *list)
      explanations.push_back(
          {{"hypothesis", e.sentence}, {"parameters", e.parameters}, {"rows", e.predicted}, {"accepted", accepted}});
  }
  Json out = {{"source", result.trace.source},
              {"format", result.trace.format},
              {"matched", report.matched()},
              {"differences", differences},
              {"unexplained", report.unexplained()},
              {"hypotheses", explanations},
              {"notes", report.notes},
              {"ranks", ranks}};
  if (result.time) out.update(to_json(*result.time));
  return out;
}

}  // namespace medley::reconcile

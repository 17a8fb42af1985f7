#include "reconcile/time_json.hpp"

namespace medley::reconcile {
namespace {

template <typename T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json waits_json(const Waits& waits) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < wait_cause_count; ++i) {
    const auto cause = static_cast<WaitCause>(i);
    out[std::string(name(cause))] = waits[cause];
  }
  return out;
}

nlohmann::ordered_json row_json(const TimeRow& row) {
  nlohmann::ordered_json out = {{"op", medley::name(row.op)}, {"group", row.group}, {"group_size", row.group_size}};
  out["only"] = row.only;
  out["bytes"] = or_null(row.bytes);
  out["phase"] = row.phase;
  out["layers"] = nullptr;
  if (row.first_layer >= 0) out["layers"] = {row.first_layer, row.last_layer};
  out["count"] = row.count;
  out["expected_us"] = or_null(row.expected_us);
  out["observed_us"] = or_null(row.observed_us);
  out["slowest_us"] = or_null(row.slowest_us);
  out["with_waiting"] = row.with_waiting;
  out["of_link"] = or_null(row.of_link);
  out["exposed_us"] = or_null(row.exposed_us);
  out["causes"] = row.exposed_us ? waits_json(row.waits) : nlohmann::ordered_json();
  nlohmann::ordered_json late = nlohmann::ordered_json::array();
  for (const auto& [rank, us] : row.late) late.push_back({{"rank", rank}, {"us", us}});
  out["late"] = late;
  out["behind"] = row.behind;
  return out;
}

}  // namespace

nlohmann::ordered_json to_json(const TimeReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array(), findings = rows;
  for (const TimeRow& row : report.rows) rows.push_back(row_json(row));
  for (const TimeFinding& finding : report.findings)
    findings.push_back({{"cause", name(finding.cause)},
                        {"us", finding.us},
                        {"exposed", finding.exposed},
                        {"sentence", finding.sentence}});
  const std::optional<double> exposed = report.exposed_us();
  nlohmann::ordered_json summary = {{"expected_by", report.source}, {"ranks", report.ranks}, {"steps", report.steps}};
  summary["step_us"] = report.step_us > 0 ? nlohmann::ordered_json(report.step_us) : nlohmann::ordered_json();
  summary["exposed_us"] = or_null(exposed);
  summary["causes"] = exposed ? waits_json(report.waits()) : nlohmann::ordered_json();
  summary["remarks"] = report.remarks;
  return {{"time", rows}, {"exposed", findings}, {"time_summary", summary}};
}

}  // namespace medley::reconcile

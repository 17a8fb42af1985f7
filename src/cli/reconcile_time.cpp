#include "cli/reconcile_time.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/table.hpp"

namespace medley::cli {
namespace {

constexpr std::size_t most_shown = 12;

std::string us_text(const std::optional<double>& us) { return us ? fmt::format("{:.1f}", *us) : std::string("?"); }

std::string layers_text(const reconcile::TimeRow& row) {
  if (row.first_layer < 0) return "";
  return row.first_layer == row.last_layer ? fmt::format("{}", row.first_layer)
                                           : fmt::format("{}-{}", row.first_layer, row.last_layer);
}

/// The largest cause, if the row has any.
std::string cause_text(const reconcile::TimeRow& row) {
  if (!row.exposed_us || *row.exposed_us <= 0) return "";
  auto worst = reconcile::WaitCause::late_rank;
  for (std::size_t i = 0; i < reconcile::wait_cause_count; ++i) {
    const auto cause = static_cast<reconcile::WaitCause>(i);
    if (row.waits[cause] > row.waits[worst]) worst = cause;
  }
  return fmt::format("{} {:.0f} %", name(worst), 100 * row.waits[worst] / *row.exposed_us);
}

void print_rows(const reconcile::TimeReport& report, bool all) {
  Table table({"op", "group", "n", "bytes", "layers", "phase", "count", "expected µs", "observed µs", "of link",
               "exposed µs", "mostly"});
  const std::size_t shown = all ? report.rows.size() : std::min(most_shown, report.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const reconcile::TimeRow& r = report.rows[i];
    table.add({std::string(name(r.op)), r.group, r.group_size > 0 ? std::to_string(r.group_size) : "?",
               r.bytes ? std::to_string(*r.bytes) : "?", layers_text(r), r.phase, fmt::format("{:.4g}", r.count),
               us_text(r.expected_us), us_text(r.observed_us) + (r.with_waiting ? " *" : ""),
               r.of_link ? fmt::format("{:.1f} %", 100 * *r.of_link) : "?", us_text(r.exposed_us), cause_text(r)});
  }
  fmt::print("{}", table.str());
  if (shown < report.rows.size()) fmt::print("{} more rows with --all-rows\n", report.rows.size() - shown);
}

}  // namespace

void print_times(const reconcile::TimeReport& report, bool all) {
  fmt::print("\ntimes of a step, mean over {} rank{} and {} step{}, beside {}\n", report.ranks,
             report.ranks == 1 ? "" : "s", report.steps, report.steps == 1 ? "" : "s", report.source);
  for (const std::string& remark : report.remarks) fmt::print("note: {}\n", remark);
  print_rows(report, all);
  if (const auto exposed = report.exposed_us())
    fmt::print("exposed: {:.1f} µs of a step of {:.1f} µs\n", *exposed, report.step_us);
  const std::size_t shown = all ? report.findings.size() : std::min(most_shown, report.findings.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const reconcile::TimeFinding& finding = report.findings[i];
    fmt::print("  {:>10.1f} µs  {:<9}  {}\n", finding.us, name(finding.cause), finding.sentence);
  }
  if (shown < report.findings.size()) fmt::print("  {} more with --all-rows\n", report.findings.size() - shown);
}

}  // namespace medley::cli

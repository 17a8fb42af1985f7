#include "cli/mix_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/table.hpp"
#include "route/pair_name.hpp"

namespace medley::cli {
namespace {

/// How much faster a row is than the best of its mix over one library, or over a backend made of two; 0 where there is none.
double gain_over(const std::vector<tune::MixRow>& rows, const tune::MixRow& row, bool made_of_two) {
  double best = INFINITY;
  for (const auto& other : rows) {
    if (other.mix == row.mix && other.backend != "auto" && route::is_pair(other.backend) == made_of_two) best = std::min(best, other.time.median);
  }
  return std::isinf(best) ? 0 : best / row.time.median;
}

}  // namespace

void report_mixes(const std::vector<tune::MixRow>& rows, const Context& context, const std::string& json) {
  const bool pairs = std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return gain_over(rows, row, true) > 0; });
  Table table({"mix", "memory", "backend", "median µs", "mad", "against the best library", pairs ? "against the best of two" : ""});
  nlohmann::ordered_json out{{"ranks", context.size()}, {"table", context.table().hash}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& row : rows) {
    const double over_one = gain_over(rows, row, false), over_two = gain_over(rows, row, true);
    const auto shown = [&](double gain) { return row.backend == "auto" && gain > 0 ? fmt::format("{:.2f}x as fast", gain) : ""; };
    table.add({row.mix, std::string(name(row.memory)), row.backend, fmt::format("{:.1f}", row.time.median),
               fmt::format("{:.1f}", row.time.mad), shown(over_one), shown(over_two)});
    out["rows"].push_back({{"mix", row.mix}, {"backend", row.backend}, {"memory", name(row.memory)},
                           {"median_us", row.time.median}, {"mad_us", row.time.mad}, {"p99_us", row.time.p99},
                           {"iterations", row.iterations}, {"speedup", over_one}});
    if (over_two > 0) out["rows"].back()["speedup_over_two"] = over_two;
  }
  if (json != "-") fmt::print("{}", table.str());
  write_json(json, out);
}

}  // namespace medley::cli

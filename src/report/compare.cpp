#include "report/compare.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <vector>

#include "report/words.hpp"

namespace medley::report {
namespace {

constexpr std::size_t most_changes = 40;

enum class Measured { step, operation };
/// Times in µs by measurement: the same name in both runs is the same measurement.
using Times = std::map<std::pair<Measured, std::string>, double>;

void keep_fastest(Times& times, Measured kind, const std::string& what, double us) {
  if (us <= 0) return;
  const auto [place, fresh] = times.emplace(std::pair(kind, what), us);
  if (!fresh) place->second = std::min(place->second, us);
}

std::string text(const Json& row, const char* key) { return row[key].get<std::string>(); }

void add_steps(const Json& run, Times& times) {
  for (const Json& file : run["steps"]) {
    for (const Json& row : file["rows"])
      keep_fastest(times, Measured::step,
                   fmt::format("{} step over {} ({}, {} memory)", text(row, "mix"), text(row, "backend"),
                               where_text(file), text(row, "memory")),
                   row["median_us"]);
  }
  for (const Json& replay : run["replays"]) {
    // The schedule's folder identifies its run.
    const std::string schedule = std::filesystem::path(text(replay, "schedule")).filename();
    for (const auto& item : replay["step_us"].items())
      keep_fastest(
          times, Measured::step,
          fmt::format("step of {} over {} ({:.0f} ranks)", schedule, item.key(), replay["ranks"].get<double>()),
          item.value());
  }
}

void add_operations(const Json& run, Times& times) {
  for (const Json& file : run["bench"]) {
    for (const Json& row : file["rows"])
      keep_fastest(
          times, Measured::operation,
          fmt::format("{}{} of {} over {} ({}, {}, {} memory)", text(row, "counts") == "skewed" ? "skewed " : "",
                      text(row, "op"), bytes_text(row["bytes"]), text(row, "backend"), text(row, "dtype"),
                      where_text(file), text(row, "memory")),
          row["median_us"]);
  }
  for (const Json& file : run["routes"]) {
    for (const Json& cell : file["cells"])
      keep_fastest(times, Measured::operation,
                   fmt::format("{} of {} by its fastest route ({}, {:.0f} × {:.0f} ranks, {} memory)", text(cell, "op"),
                               bytes_text(cell["bytes"]), text(cell, "dtype"), cell["hosts"].get<double>(),
                               cell["ranks_per_host"].get<double>(), text(cell, "memory")),
                   cell["routes"][0]["median_us"]);
  }
}

Times times_of(const Json& run) {
  Times times;
  add_steps(run, times);
  add_operations(run, times);
  return times;
}

}  // namespace

Json changes(const Json& before, const Json& after) {
  const Times old = times_of(before), now = times_of(after);
  struct Change {
    Measured kind;
    double size;
    Json row;
  };
  std::vector<Change> all;
  for (const auto& [what, us] : now) {
    const auto known = old.find(what);
    if (known == old.end()) continue;
    all.push_back({what.first,
                   std::abs(std::log(us / known->second)),
                   {{"what", what.second}, {"before", known->second}, {"after", us}}});
  }
  std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) {
    return std::pair(a.kind, -a.size) < std::pair(b.kind, -b.size);
  });
  Json out = Json::array();
  for (std::size_t i = 0; i < std::min(most_changes, all.size()); ++i) out.push_back(std::move(all[i].row));
  return out;
}

}  // namespace medley::report

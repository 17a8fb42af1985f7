// Sentences about measurements: whole steps, routes, traces, replays.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "report/sentences.hpp"
#include "report/words.hpp"
#include "route/pair_name.hpp"

namespace medley::report {
namespace {

constexpr double pays = 1.05, costs = 0.95;  // changes in between are within most machines' noise

struct Gain {
  std::string mix, library, where;
  double ratio = 0;
};

/// Steps by where they were measured.
using ByPlace = std::map<std::string, std::vector<std::string>>;

std::string joined(const ByPlace& steps) {
  std::vector<std::string> parts;
  for (const auto& [where, mixes] : steps) parts.push_back(fmt::format("{} with {}", fmt::join(mixes, ", "), where));
  return fmt::format("{}", fmt::join(parts, " and "));
}

/// auto against the fastest single library, for every step that has both; the largest gain first.
std::vector<Gain> gains_of(const Json& run) {
  std::vector<Gain> out;
  for (const Json& file : run["steps"]) {
    std::map<std::string, std::pair<double, std::map<double, std::string>>>
        mixes;  // auto's time, and libraries by time
    for (const Json& row : file["rows"]) {
      const std::string backend = row["backend"];
      auto& [by_auto, libraries] = mixes[row["mix"]];
      if (backend == "auto") by_auto = row["median_us"];
      else if (!route::is_made_of_two(backend)) libraries.emplace(row["median_us"], backend);
    }
    for (const auto& [mix, times] : mixes) {
      const auto& [by_auto, libraries] = times;
      if (by_auto > 0 && !libraries.empty())
        out.push_back({mix, libraries.begin()->second, where_text(file), libraries.begin()->first / by_auto});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Gain& a, const Gain& b) { return a.ratio > b.ratio; });
  return out;
}

}  // namespace

std::optional<Finding> about_steps(const Json& run) {
  const std::vector<Gain> gains = gains_of(run);
  if (gains.empty()) return std::nullopt;
  const Gain& best = gains.front();
  ByPlace flat, slower;
  for (const Gain& gain : gains) {
    if (gain.ratio < pays)
      (gain.ratio < costs ? slower : flat)[gain.where].push_back(fmt::format("{} ({:.2f}×)", gain.mix, gain.ratio));
  }
  if (best.ratio < pays)
    return Finding{70, "steps",
                   fmt::format("Mixing libraries does not pay here: over whole steps auto takes {:.2f} to "
                               "{:.2f} times as long as the "
                               "best single library ({}).",
                               1 / best.ratio, 1 / gains.back().ratio, best.library)};
  std::string text = fmt::format("auto is {:.2f}× faster than the best single library ({}) on the {} step, {}.",
                                 best.ratio, best.library, best.mix, best.where);
  if (!flat.empty()) text += fmt::format(" Mixing does not pay on {}.", joined(flat));
  if (!slower.empty()) text += fmt::format(" auto is slower than the best single library on {}.", joined(slower));
  return Finding{70, "steps", text};
}

std::optional<Finding> about_tuned_steps(const Json& run) {
  const Json* best = nullptr;
  for (const Json& table : run["routes"]) {
    const Json& step = table["tuned"];
    if (!step.is_null() && (!best || step["gain"] > (*best)["gain"])) best = &step;
  }
  if (!best) return std::nullopt;
  const Json& step = *best;
  const std::string name = step["step"], library = step["library"];
  if (!library.empty())
    return Finding{
        50, "steps",
        fmt::format("Tuned for the step {}: no mix of libraries was surely faster than {} alone, which the table "
                    "therefore uses.",
                    name, library)};
  return Finding{
      65, "steps",
      fmt::format("Tuned for the step {}: the chosen routes are {:.2f}× as fast as the best single library (95 % "
                  "interval {:.2f} to {:.2f}).",
                  name, step["gain"].get<double>(), step["gain_low"].get<double>(), step["gain_high"].get<double>())};
}

std::optional<Finding> about_routes(const Json& run) {
  std::map<std::string, int> wins;
  int cells = 0;
  double worst = 0;
  std::string example;
  for (const Json& file : run["routes"]) {
    for (const Json& cell : file["cells"]) {
      const Json& first = cell["routes"][0];
      ++cells;
      ++wins[first["backend"]];
      std::map<std::string, double> best;                                                           // per library
      for (const Json& route : cell["routes"]) best.emplace(route["backend"], route["median_us"]);  // fastest first
      for (const auto& [backend, us] : best) {
        const double ratio = us / first["median_us"].get<double>();
        if (!std::isfinite(ratio) || ratio <= worst) continue;
        worst = ratio;
        example = fmt::format("{} of {}: {} against {}", cell["op"].get<std::string>(),
                              bytes_text(cell["bytes"].get<double>()), backend, first["backend"].get<std::string>());
      }
    }
  }
  if (cells == 0) return std::nullopt;
  std::vector<std::pair<int, std::string>> order;
  for (const auto& [backend, count] : wins) order.emplace_back(-count, backend);
  std::sort(order.begin(), order.end());
  std::vector<std::string> words;
  for (const auto& [count, backend] : order) words.push_back(fmt::format("{} {}", backend, -count));
  std::string text = fmt::format("Of {} measured cells (operation, size, comm) the fastest route is over {}.", cells,
                                 fmt::join(words, ", "));
  if (worst > pays) text += fmt::format(" The wrong library takes up to {:.0f}× as long ({}).", worst, example);
  return Finding{40, "winners", text};
}

std::optional<Finding> about_problems(const Json& run) {
  std::size_t problems = 0;
  std::string where;
  for (const Json& trace : run["traces"]) {
    if (problems == 0 && !trace["problems"].empty()) where = trace["file"];
    problems += trace["problems_in_all"].get<std::size_t>();
  }
  if (problems == 0) return std::nullopt;
  return Finding{
      90, "timeline",
      fmt::format("{} operation{} did not end well; the first is in {}.", problems, problems == 1 ? "" : "s", where)};
}

std::optional<Finding> about_traces(const Json& run) {
  const Json *owner = nullptr,
             *worst = nullptr;  // a trace, and the rank of its drawn step that waits longest
  double share = -1;
  for (const Json& trace : run["traces"]) {
    if (trace["timeline"].is_null() || !trace["timeline"]["waits_known"].get<bool>()) continue;
    const double step = trace["timeline"]["step_us"];
    for (const Json& rank : trace["timeline"]["ranks"]) {
      const double exposed = step > 0 ? std::min(1.0, rank["exposed_us"].get<double>() / step) : 0;
      if (exposed <= share) continue;
      share = exposed;
      owner = &trace;
      worst = &rank;
    }
  }
  if (!worst) return std::nullopt;
  const Json& timeline = (*owner)["timeline"];
  std::map<std::string, double> by_op;
  for (const Json& bar : (*worst)["bars"])
    by_op[timeline["names"][bar[3].get<std::size_t>()].get<std::string>()] += bar[7].get<double>();
  const auto largest =
      std::max_element(by_op.begin(), by_op.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text =
      fmt::format("In a step of {}, rank {} waits {} of {} for communication", (*owner)["file"].get<std::string>(),
                  (*worst)["rank"].get<int>(), percent_text(share), time_text(timeline["step_us"]));
  if (largest != by_op.end() && largest->second > 0)
    text += fmt::format("; the largest part is {} ({})", largest->first, time_text(largest->second));
  return Finding{60, "timeline", text + "."};
}

std::optional<Finding> about_replays(const Json& run) {
  std::vector<double> off;
  for (const Json& replay : run["replays"]) {
    for (const char* kind : {"calibrated_us", "predicted_us"}) {
      for (const auto& item : replay[kind].items()) {
        const double took = replay["step_us"][item.key()];
        if (took > 0) off.push_back(std::abs(item.value().get<double>() / took - 1));
      }
    }
  }
  if (off.empty()) return std::nullopt;
  std::sort(off.begin(), off.end());
  return Finding{30, "replay",
                 fmt::format("Predicted step times are off by {} in the median and {} at most, over {} steps.",
                             percent_text(off[off.size() / 2]), percent_text(off.back()), off.size())};
}

}  // namespace medley::report

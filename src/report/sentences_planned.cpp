// Sentences about what was computed: comparisons with plans, matrix products, searches, plans.
#include <algorithm>
#include <map>

#include "report/sentences.hpp"
#include "report/words.hpp"

namespace medley::report {

std::optional<Finding> about_reconcile(const Json& run) {
  if (run["reconcile"].empty()) return std::nullopt;
  std::size_t matched = 0;
  double explained = 0, unexplained = 0;
  for (const Json& result : run["reconcile"]) {
    matched += result["matched"].get<bool>() ? 1 : 0;
    explained += result["rows_explained"].get<double>();
    unexplained += result["rows_unexplained"].get<double>();
  }
  const std::size_t all = run["reconcile"].size();
  const std::string differing =
      fmt::format("{:.0f} rows differ with a known cause, {:.0f} without", explained, unexplained);
  std::string text = matched == all ? fmt::format("{} sent exactly what was planned.",
                                                  all == 1 ? "The run" : fmt::format("All {} runs", all))
                     : all == 1 ? fmt::format("The run does not match its plan: {}.", differing)
                                    : fmt::format("{} of {} runs match their plan; {}.", matched, all, differing);
  return Finding{unexplained > 0 ? 80 : 35, "reconcile", std::move(text)};
}

/// The largest cause of waiting, of the run that waits most of its step.
std::optional<Finding> about_waits(const Json& run) {
  static const std::map<std::string, std::string> words{
      {"late_rank", "because another rank had not called the operation yet"},
      {"queue", "because another operation of the group was in progress"},
      {"order", "because the operation could not start before others, by lane order or memory they share"},
      {"slow", "because transfers took longer than predicted"},
      {"overlap", "because the program waited for asynchronous operations before they could be complete"},
      {"blocking", "because the calls block, and take as long as predicted"},
      {"unknown", "for reasons that neither the trace nor the prediction shows"}};
  const Json* most = nullptr;
  for (const Json& result : run["reconcile"]) {
    const Json& time = result["time"];
    if (time.is_null() || !time["exposed_us"].is_number() || !time["causes"].is_object()) continue;
    if (!most || time["exposed_us"] > (*most)["time"]["exposed_us"]) most = &result;
  }
  if (!most) return std::nullopt;
  const Json& time = (*most)["time"];
  const double exposed = time["exposed_us"];
  std::string cause;
  double us = 0;
  for (const auto& item : time["causes"].items())
    if (item.value().get<double>() > us) us = item.value(), cause = item.key();
  if (exposed <= 0 || cause.empty()) return std::nullopt;
  const auto known = words.find(cause);
  return Finding{
      cause == "unknown" ? 20 : 55, "reconcile",
      fmt::format("In {} the program waits {} a step for communication; {} of that {}.",
                  (*most)["source"].get<std::string>(), time_text(exposed), percent_text(std::min(1.0, us / exposed)),
                  known == words.end() ? "by " + cause : known->second)};
}

std::optional<Finding> about_shapes(const Json& run) {
  const Json *owner = nullptr, *worst = nullptr;
  double most = 0;
  for (const Json& shape : run["shapes"]) {
    for (const Json& gemm : shape["gemms"]) {
      double lost = 0;
      for (const Json& us : gemm["lost_us"]) lost += us.get<double>();
      lost *= gemm["count"].get<double>();
      if (lost <= most) continue;
      most = lost;
      owner = &shape;
      worst = &gemm;
    }
  }
  if (!worst) return std::nullopt;
  const double total = (*worst)["count"].get<double>() * (*worst)["predicted_us"].get<double>();
  std::string text = fmt::format("The largest loss of {} on {} is in {}: {} of its {} per step, most of it to {}.",
                                 (*owner)["model"].get<std::string>(), (*owner)["gpu"].get<std::string>(),
                                 (*worst)["name"].get<std::string>(), percent_text(std::min(1.0, most / total)),
                                 time_text(total), (*worst)["lost_to"].get<std::string>());
  if (!(*owner)["advice"].empty()) {
    const Json& advice = (*owner)["advice"][0];
    text +=
        fmt::format(" {} {:g} instead of {:g} is predicted {}.", advice["knob"].get<std::string>(),
                    advice["now"].get<double>(), advice["was"].get<double>(), advice["gain_text"].get<std::string>());
  }
  return Finding{50, "shape", std::move(text)};
}

std::optional<Finding> about_searches(const Json& run) {
  const Json *owner = nullptr, *best = nullptr;
  for (const Json& search : run["searches"]) {
    for (const Json& shape : search["pareto"]) {
      if (shape["gain"].is_null() || (best && shape["gain"] <= (*best)["gain"])) continue;
      owner = &search;
      best = &shape;
    }
  }
  if (!best) return std::nullopt;
  return Finding{
      20, "search",
      fmt::format("Near {} the fastest shape found is predicted {} on {} with {:+.2f} % parameters: hidden "
                  "{:.0f}, {:.0f} heads, {:.0f} layers, ffn {:.0f}, vocabulary {:.0f}.",
                  (*owner)["model"].get<std::string>(), (*best)["gain_text"].get<std::string>(),
                  (*owner)["gpu"].get<std::string>(), 100 * (*best)["parameters_change"].get<double>(),
                  (*best)["hidden"].get<double>(), (*best)["heads"].get<double>(), (*best)["layers"].get<double>(),
                  (*best)["ffn"].get<double>(), (*best)["vocab"].get<double>())};
}

std::optional<Finding> about_plans(const Json& run) {
  for (const Json& plan : run["plans"]) {
    const double step = plan["step_us"].is_null() ? 0 : plan["step_us"].get<double>();
    if (step <= 0) continue;
    double exposed = 0;
    for (const char* group : {"tp", "cp", "ep", "dp", "pp", "sync"}) exposed += plan["breakdown"].value(group, 0.0);
    return Finding{10, "plan",
                   fmt::format("A step of {} ({}) is predicted to take {} on {}, of which {} is exposed communication.",
                               plan["model"].get<std::string>(), plan["layout"].get<std::string>(), time_text(step),
                               plan["machine"].is_null() ? "the machine" : plan["machine"].get<std::string>(),
                               percent_text(exposed / step))};
  }
  return std::nullopt;
}

}  // namespace medley::report

#include "cost/plan_sweep.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>
#include <set>

#include "cost/on_all_cores.hpp"
#include "plan/export.hpp"

namespace medley::cost {
namespace {

std::optional<std::size_t> fastest_of(const std::vector<SweepPoint>& points) {
  std::optional<std::size_t> fastest;
  std::set<Count> parameters;
  const auto rate = [&](std::size_t i) { return points[i].time->cost.tokens_per_s_per_gpu; };
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!points[i].time) continue;
    parameters.insert(points[i].parameters);
    if (points[i].time->fits && (!fastest || rate(i) > rate(*fastest))) fastest = i;
  }
  return parameters.size() == 1 ? fastest : std::nullopt;
}

// A misspelt key is an error of the request, not of one point. A model that cannot be read is one of its
// point.
void check_key(const SweepAxis& axis, Model m, Layout layout) {
  if (axis.key != "model" && !set_swept(m, layout, axis.key, axis.values.at(0)))
    throw Error(ErrorKind::invalid, fmt::format("--sweep key '{}' is not known", axis.key));
}

SweepPoint planned(const PlanSetting& setting, Model m, Layout layout, const std::vector<SweepAxis>& axes,
                   std::vector<std::string> values) {
  SweepPoint point;
  point.values = std::move(values);
  try {
    for (std::size_t a = 0; a < axes.size(); ++a) set_swept(m, layout, axes[a].key, point.values[a]);
    check(m, "--sweep");
    PlanResult plan = plan_step(setting, m, layout, std::nullopt);
    point.world = plan.layout.world();
    point.rank = plan.rank;
    point.parameters = plan::count_parameters(m).total;
    point.volume = std::move(plan.volume);
    point.memory = plan.memory;
    point.fullest = plan.fullest;
    point.time = std::move(plan.time);
  } catch (const Error& error) {
    point.refused = error.what();
  }
  return point;
}

nlohmann::ordered_json point_json(const SweepPoint& point, const std::vector<SweepAxis>& axes) {
  nlohmann::ordered_json json;
  for (std::size_t a = 0; a < axes.size(); ++a) json[axes[a].key] = point.values[a];
  if (!point.refused.empty()) {
    json["refused"] = point.refused;
    return json;
  }
  json.update({{"world", point.world}, {"rank", point.rank}, {"parameters", point.parameters}});
  json.update(plan::to_json(point.volume));
  json["memory"] = to_json(point.memory);
  if (point.time) json.update(to_json(*point.time, point.fullest));
  return json;
}

}  // namespace

SweepResult sweep_plans(const SweepRequest& request) {
  const PlanSetting setting(request);
  const Layout layout = layout_of(request);
  SweepResult result{.model = model_of(request),
                     .framework = setting.framework,
                     .timed = setting.machine.has_value(),
                     .trains = setting.tokens > 0,
                     .axes = request.axes,
                     .points = std::vector<SweepPoint>(grid_size(request.axes)),
                     .fastest = {}};
  for (const SweepAxis& axis : request.axes) check_key(axis, result.model, layout);
  on_all_cores(
      result.points.size(),
      [&](std::size_t i) {
        result.points[i] = planned(setting, result.model, layout, request.axes, grid_point(request.axes, i));
      },
      request.progress);
  result.fastest = fastest_of(result.points);
  return result;
}

nlohmann::ordered_json to_json(const SweepResult& result) {
  auto axes = nlohmann::ordered_json::array(), points = nlohmann::ordered_json::array();
  for (const SweepAxis& axis : result.axes) axes.push_back({{"key", axis.key}, {"values", axis.values}});
  for (const SweepPoint& point : result.points) points.push_back(point_json(point, result.axes));
  return {{"model", plan::to_json(result.model)},
          {"framework", plan::name(result.framework)},
          {"sweep", std::move(axes)},
          {"points", std::move(points)},
          {"fastest", result.fastest ? nlohmann::ordered_json(*result.fastest) : nlohmann::ordered_json()}};
}

}  // namespace medley::cost

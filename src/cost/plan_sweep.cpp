#include "cost/plan_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <medley/error.hpp>
#include <set>
#include <thread>

#include "plan/export.hpp"

namespace medley::cost {
namespace {

constexpr std::size_t most_points = 200000;

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

class Sweep {
 public:
  explicit Sweep(const SweepRequest& request) : base_layout_(layout_of(request)), small_(request.small) {
    result_.framework = framework_of(request);
    result_.model = model_of(request);
    result_.axes = request.axes;
    if (!request.machine.empty()) machine_ = find_machine(request.machine);
    result_.timed = machine_.has_value();
    std::size_t size = 1;
    for (const SweepAxis& axis : request.axes) {
      check_axis(axis);
      size *= axis.values.size();
      if (size > most_points)
        throw Error(ErrorKind::invalid,
                    fmt::format("--sweep makes {} points or more; at most {} are planned", size, most_points));
    }
    result_.points.resize(size);
  }

  SweepResult run(const std::function<void(std::size_t, std::size_t)>& progress) && {
    const std::size_t size = result_.points.size();
    std::atomic<std::size_t> next{0};
    const auto work = [&](bool tells) {
      for (std::size_t i = next++; i < size; i = next++) {
        plan_point(i);
        if (tells) progress(i + 1, size);
      }
    };
    std::vector<std::jthread> threads;
    const unsigned count =
        std::min<unsigned>(std::max(1u, std::thread::hardware_concurrency()), static_cast<unsigned>(size));
    for (unsigned i = 1; i < count; ++i) threads.emplace_back(work, false);
    try {
      work(static_cast<bool>(progress));
    } catch (...) {
      next = size;  // the other threads end after their point
      throw;
    }
    threads.clear();  // joins
    result_.fastest = fastest_of(result_.points);
    return std::move(result_);
  }

 private:
  // A misspelt key is an error of the request, not of one point. A model that cannot be read is one of its
  // point.
  void check_axis(const SweepAxis& axis) const {
    if (axis.values.empty()) throw Error(ErrorKind::invalid, fmt::format("--sweep '{}=' names no values", axis.key));
    Layout layout = base_layout_;
    Model m = result_.model;
    if (axis.key != "model" && !set_swept(m, layout, axis.key, axis.values[0]))
      throw Error(ErrorKind::invalid, fmt::format("--sweep key '{}' is not known", axis.key));
  }

  void plan_point(std::size_t index) {
    SweepPoint& point = result_.points[index];
    const auto& axes = result_.axes;
    point.values.resize(axes.size());
    for (std::size_t a = axes.size(); a-- > 0;) {
      point.values[a] = axes[a].values[index % axes[a].values.size()];
      index /= axes[a].values.size();
    }
    try {
      Model m = result_.model;
      Layout layout = base_layout_;
      for (std::size_t a = 0; a < axes.size(); ++a) set_swept(m, layout, axes[a].key, point.values[a]);
      check(m, "--sweep");
      PlanResult plan = plan_step(m, layout, result_.framework, std::nullopt, machine_, small_);
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
  }

  Layout base_layout_;
  Count small_;
  std::optional<Machine> machine_;
  SweepResult result_;
};

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

SweepResult sweep_plans(const SweepRequest& request) { return Sweep(request).run(request.progress); }

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

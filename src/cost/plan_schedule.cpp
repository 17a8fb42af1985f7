// The schedules behind a plan as JSON, for replay.
#include <fmt/format.h>

#include <medley/error.hpp>

#include "cost/plan_step.hpp"
#include "plan/export.hpp"

namespace medley::cost {
namespace {

void check_world(const Layout& layout) {
  if (layout.world() > (Count{1} << 20))
    throw Error(
        ErrorKind::invalid,
        fmt::format("--schedule lists the ranks of every group; a world of {} is more than 2^20", layout.world()));
}

std::vector<double> entry_us(const PlanResult& result, Count rank) {
  if (!result.time) return {};
  return Step(result.model, result.layout, result.framework, rank).entry_us(result.time->machine);
}

// What was asked for. Numbers are text, empty where they were not given.
nlohmann::ordered_json request_json(const PlanRequest& request) {
  const auto number = [](Count value) { return value == 0 ? std::string{} : std::to_string(value); };
  return {{"model", request.model},
          {"as", request.as},
          {"layout", request.layout},
          {"framework", request.framework},
          {"micro_batch", number(request.micro_batch)},
          {"global_batch", number(request.global_batch)},
          {"seq", number(request.seq)},
          {"dtype", request.dtype},
          {"machine", request.machine}};
}

}  // namespace

nlohmann::ordered_json schedule_json(const PlanRequest& request, const PlanResult& result) {
  check_world(result.layout);
  auto json = plan::schedule_json(result.schedule, result.layout, result.rank, entry_us(result, result.rank));
  json["plan"] = request_json(request);
  return json;
}

nlohmann::ordered_json all_schedules_json(const PlanResult& result) {
  const Count world = result.layout.world();
  check_world(result.layout);
  if (world > 1024)
    throw Error(ErrorKind::invalid,
                fmt::format("--rank all writes a schedule for each of {} ranks; at most 1024 are written", world));
  auto ranks = nlohmann::ordered_json::array();
  for (Count rank = 0; rank < world; ++rank) {
    const Schedule schedule = plan::make_schedule(result.model, result.layout, result.framework, rank);
    ranks.push_back(plan::schedule_json(schedule, result.layout, rank, entry_us(result, rank)));
  }
  return {{"schema", "medley.schedule/1"}, {"world", world}, {"ranks", std::move(ranks)}};
}

}  // namespace medley::cost

#include "replay/replay_job.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "replay/interleaved_rounds.hpp"
#include "replay/replayed_step.hpp"
#include "trace/export.hpp"
#include "tune/candidates.hpp"
#include "tune/rank_setup.hpp"

namespace medley::replay {
namespace {

/// The requested backends, or all that serve the world, and the runtime's choice among them.
std::vector<std::string> backends_to_run(const Context& context, const std::vector<std::string>& asked) {
  if (!asked.empty()) return asked;
  std::vector<std::string> names;
  Comm world = context.world();
  for (const tune::Candidate& usable :
       tune::candidates(world, Op::all_reduce, DType::f32, Memory::host, {tune::available_backends(context)}))
    names.push_back(usable.backend);
  if (context.backends().size() > 1) names.emplace_back("auto");
  return names;
}

/// The prediction for each backend by the context's route table.
void predict_by_table(const ReplayRequest& request, const Context& context, const WorldSchedule& schedule,
                      const Places& places, ReplayResult& result) {
  result.table = context.table().path;
  if (result.table.empty()) return;
  const route::Table table = route::Table::load(result.table);
  const std::vector<std::string> usable = tune::available_backends(context);
  for (const std::string& backend : result.backends) {
    OperationTimes times(table, backend == "auto" ? "" : backend, usable);
    const Prediction prediction =
        predict(schedule, places, request.options, time_by_table(times, places.hosts, request.options.scale));
    result.unknown = std::max(result.unknown, prediction.unknown);
    if (prediction.unknown == 0) result.by_table_us[backend] = prediction.step_us;
  }
}

}  // namespace

void check_replay(const ReplayRequest& request, int ranks) {
  if (!request.table.empty()) static_cast<void>(route::Table::load(request.table));
  const WorldSchedule schedule = read_schedule(request.schedule);
  static_cast<void>(schedule.of(0, ranks > 0 ? ranks : std::max(1, schedule.world)));
  if (ranks == 0 && schedule.world > 1) {
    throw Error(ErrorKind::invalid,
                fmt::format("the schedule is of {} ranks; add -n {}", schedule.world, schedule.world));
  }
}

ReplayResult run_replay(const ReplayRequest& request) {
  const WorldSchedule schedule = read_schedule(request.schedule);
  setenv("MEDLEY_TRACE", request.folder.c_str(), 1);  // tells a context's recorder its folder
  ContextOptions options;
  options.backends = tune::backends_to_open(request.backends);
  options.table = request.table;
  options.hierarchical = request.backends.empty();  // compares all, those that the table never chooses too
  if (overlaps(schedule) && request.options.tflops > 0) options.progress_thread = UseThread::always;
  Context context(options);
  if (options.progress_thread != UseThread::always) tune::bind_to_core(context);  // as in tune
  ReplayResult result{.schedule = request.schedule,
                      .rank = context.rank(),
                      .ranks = context.size(),
                      .scale = request.options.scale,
                      .backends = backends_to_run(context, request.backends),
                      .step_us = {},
                      .by_parts_us = {},
                      .by_table_us = {},
                      .table = {}};
  InterleavedRounds rounds(context, schedule, request.options, result.backends, request.calibrate);
  for (int round = 0; round < request.steps; ++round) {
    rounds.run(static_cast<std::size_t>(round));
    request.progress(round + 1, request.steps);
  }
  result.step_us = rounds.step_us();
  result.by_parts_us = rounds.predicted_us();
  if (context.rank() != 0) return result;
  predict_by_table(request, context, schedule, rounds.places(), result);
  result.trace = trace::open_trace(request.folder.native());
  const trace::RankTrace& rank = trace::busiest(result.trace);
  result.summary = trace::summarise(result.trace, rank, trace::find_steps(result.trace, rank));
  return result;
}

nlohmann::ordered_json to_json(const ReplayResult& result) {
  return {{"schedule", result.schedule},
          {"ranks", result.ranks},
          {"scale", result.scale},
          {"step_us", result.step_us},
          {"predicted_us", result.by_table_us},
          {"calibrated_us", result.by_parts_us},
          {"rank", result.summary.rank},
          {"rows", trace::to_json(result.summary.rows, result.trace)},
          {"totals", trace::totals_json(result.summary.rows, result.trace)}};
}

}  // namespace medley::replay

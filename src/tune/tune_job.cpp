#include "tune/tune_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>

#include "tune/job_clock.hpp"
#include "tune/mix_step.hpp"
#include "tune/placement.hpp"
#include "tune/rank_setup.hpp"
#include "tune/step_tuner.hpp"

namespace medley::tune {
namespace {

using std::chrono::steady_clock;

constexpr auto save_every = std::chrono::milliseconds(500);  // what a kill can cost

/// The table to resume, or a new one. One of another machine is not mixed with this one's.
route::Table table_to_resume(const std::filesystem::path& file, const Context& context) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  route::Table table = route::Table::load(file);
  route::Machine here = route::this_machine();
  for (const BackendInfo& backend : context.backends()) here.libraries[backend.name] = backend.version;
  if (const std::string why = route::misfit(table.machine, here); !why.empty()) {
    throw Error(
        ErrorKind::invalid,
        fmt::format("{} is the table of another machine: {}; name another file or remove it", file.string(), why));
  }
  return table;
}

}  // namespace

std::filesystem::path table_file(const TuneRequest& request) {
  std::filesystem::path file = request.file.empty() ? route::cached_table() : request.file;
  if (file.empty()) throw Error(ErrorKind::invalid, "there is no home folder for a cached table; name a file with -o");
  return file;
}

void restrict_to(TuneOptions& options, std::vector<NeededOperation> needed) {
  const auto once = [](auto& list, const auto& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  };
  options.ops.clear();
  options.dtypes.clear();
  for (const NeededOperation& operation : needed) {
    once(options.ops, operation.op);
    if (reduces(operation.op)) once(options.dtypes, operation.dtype);
  }
  options.exactly = std::move(needed);
}

std::function<std::unique_ptr<Step>(Context&)> mix_as_step(const std::string& mix, Memory memory) {
  return [mix, memory](Context& context) -> std::unique_ptr<Step> {
    Comm world = context.world();
    return std::make_unique<MixStep>(world, mix, memory, hosts_of(world));
  };
}

TuneResult run_tune(const TuneRequest& request, const TuneJobHooks& hooks) {
  TuneOptions options = request.options;
  TuneResult result{.file = table_file(request), .table = {}, .advice = {}};
  ContextOptions wishes = context_for(options.backends, options.memory);
  if (request.progress_thread) wishes.progress_thread = UseThread::always;
  Context context(wishes);
  result.rank = context.rank();
  Comm world = context.world();
  result.advice = advice_on_cores(placement_of_all(world), hosts_of(world));
  if (options.memory == Memory::host && !request.progress_thread) bind_to_core(context);  // as in bench
  if (options.backends.empty()) options.backends = available_backends(context);
  if (context.rank() == 0) result.table = table_to_resume(result.file, context);
  const std::size_t had = result.table.cells().size();
  auto saved = steady_clock::now() - save_every;
  const TuneHooks inner{.changed =
                            [&](const route::Table& now) {
                              if (steady_clock::now() - saved < save_every) return;
                              now.save(result.file);
                              saved = steady_clock::now();
                            },
                        .progress = hooks.progress,
                        .stop = hooks.stop};
  if (request.step) {
    const std::unique_ptr<Step> step = request.step(context);
    tune_step(context, *step, {request.step_name, options.backends, options.memory, options.seconds, request.replace},
              result.table, inner);
  } else {
    tune(context, options, result.table, inner);
  }
  if (context.rank() == 0) result.table.save(result.file);
  result.new_cells = result.table.cells().size() - std::min(had, result.table.cells().size());
  return result;
}

nlohmann::ordered_json to_json(const TuneResult& result) { return nlohmann::ordered_json::parse(result.table.text()); }

}  // namespace medley::tune

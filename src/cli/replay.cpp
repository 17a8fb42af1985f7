// medley replay: runs a schedule for real, over one backend or over several by turns.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <medley/error.hpp>
#include <optional>

#include "bootstrap/environment.hpp"
#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/replay_turns.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "replay/predict.hpp"
#include "trace/export.hpp"
#include "tune/candidates.hpp"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;

struct ReplayArguments {
  std::string schedule, backends, table, trace, json;
  int ranks = 0;
  int steps = 5;
  bool calibrate = false;
  replay::ReplayOptions options;
};

/// How a command that starts ranks tells them of a folder for all of them.
constexpr const char* folder_variable = "MEDLEY_REPLAY_FOLDER";

/// Where ranks record: the folder asked for, or one of this process that goes with it.
class TraceFolder {
 public:
  explicit TraceFolder(const std::string& asked) : own_(asked.empty()), path_(own_ ? new_folder() : fs::path(asked)) {}
  ~TraceFolder() {
    std::error_code ignored;
    if (own_) fs::remove_all(path_, ignored);
  }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  static fs::path new_folder() {
    std::string pattern = fs::temp_directory_path() / "medley-replay-XXXXXX";
    if (!mkdtemp(pattern.data()))
      throw Error(ErrorKind::system, fmt::format("cannot make a folder {}: {}", pattern, std::strerror(errno)));
    return pattern;
  }
  bool own_;
  fs::path path_;
};

/// Those asked for, or all that serve the world, and the runtime's choice among them.
std::vector<std::string> backends_to_run(const Context& context, const std::string& list) {
  std::vector<std::string> names = parse_list(list);
  if (!names.empty()) return names;
  Comm world = context.world();
  for (const tune::Candidate& usable :
       tune::candidates(world, Op::all_reduce, DType::f32, Memory::host,
                        {available_backends(context)}))
    names.push_back(usable.backend);
  if (context.backends().size() > 1) names.emplace_back("auto");
  return names;
}

/// What the table that the context follows says that a step takes, over each backend; empty without one.
std::map<std::string, double> by_table(const ReplayArguments& given, const Context& context,
                                       const replay::WorldSchedule& schedule, const replay::Places& places,
                                       const std::vector<std::string>& backends) {
  std::map<std::string, double> out;
  if (context.table().path.empty()) return out;
  const route::Table table = route::Table::load(context.table().path);
  const std::vector<std::string> usable = available_backends(context);
  std::size_t unknown = 0;
  for (const std::string& backend : backends) {
    replay::OperationTimes times(table, backend == "auto" ? "" : backend, usable);
    const replay::Prediction prediction =
        predict(schedule, places, given.options, time_by_table(times, places.hosts, given.options.scale));
    unknown = std::max(unknown, prediction.unknown);
    if (prediction.unknown == 0) out[backend] = prediction.step_us;
  }
  if (unknown > 0)
    fmt::print(stderr,
               "medley replay: {} says nothing about {} operations of the step; where they matter no time is "
               "predicted\n",
               context.table().path, unknown);
  return out;
}

struct Times {
  std::map<std::string, double> step_us, by_parts_us, by_table_us;
};

/// A predicted time and how far it is off.
std::vector<std::string> beside(const std::map<std::string, double>& predicted, const std::string& backend,
                                double took) {
  const auto told = predicted.find(backend);
  if (told == predicted.end()) return {"-", "-"};
  return {fmt::format("{:.1f}", told->second), fmt::format("{:+.0f} %", 100 * (told->second / took - 1))};
}

void report(const ReplayArguments& given, const fs::path& folder, const std::vector<std::string>& backends,
            const Times& steps, int ranks) {
  const trace::Trace t = trace::open_trace(folder.native());
  const trace::RankTrace& rank = trace::busiest(t);
  const trace::Summary summary = trace::summarise(t, rank, trace::find_steps(t, rank));
  write_json(given.json, {{"schedule", given.schedule},
                          {"ranks", ranks},
                          {"scale", given.options.scale},
                          {"step_us", steps.step_us},
                          {"predicted_us", steps.by_table_us},
                          {"calibrated_us", steps.by_parts_us},
                          {"rank", rank.rank},
                          {"rows", trace::to_json(summary.rows, t)},
                          {"totals", trace::totals_json(summary.rows, t)}});
  if (given.json == "-") return;
  Table rows({"op", "n", "bytes", "count", "phase", "module", "median µs", "exposed"});
  for (const trace::Row& r : summary.rows) {
    rows.add({std::string(name(r.op)), std::to_string(t.groups[r.group].size), std::to_string(r.bytes),
              std::to_string(r.count), r.phase, r.module, fmt::format("{:.2f}", r.median_us),
              r.total_us > 0 ? fmt::format("{:.0f} %", 100 * r.exposed_us / r.total_us) : "-"});
  }
  fmt::print("rank {} of {}, one step of {}\n{}\n", rank.rank, ranks, given.schedule, rows.str());
  std::vector<std::string> header{"backend", "step µs"};
  if (!steps.by_parts_us.empty()) header.insert(header.end(), {"by its parts", "off by"});
  if (!steps.by_table_us.empty()) header.insert(header.end(), {"by the table", "off by"});
  Table times(header);
  for (const std::string& backend : backends) {
    const double took = steps.step_us.at(backend);
    std::vector<std::string> row{backend, fmt::format("{:.1f}", took)};
    for (const auto* predicted : {&steps.by_parts_us, &steps.by_table_us}) {
      if (predicted->empty()) continue;
      for (std::string& text : beside(*predicted, backend, took)) row.push_back(std::move(text));
    }
    times.add(row);
  }
  fmt::print("{}", times.str());
  if (!given.trace.empty()) fmt::print("recorded in {}; medley trace shows all of it\n", given.trace);
}

int replay_here(const ReplayArguments& given) {
  const replay::WorldSchedule schedule = replay::read_schedule(given.schedule);
  const char* const shared = std::getenv(folder_variable);
  const TraceFolder folder(given.trace.empty() && shared ? shared : given.trace);
  setenv("MEDLEY_TRACE", folder.path().c_str(), 1);
  std::vector<std::string> named = parse_list(given.backends);
  std::erase(named, "auto");  // the runtime's own choice among those that work
  ContextOptions options;
  options.backends = named;
  options.table = given.table;
  const bool overlaps = std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const auto& rank) {
    return std::any_of(rank.actions.begin(), rank.actions.end(), [](const auto& a) { return a.token != 0; });
  });
  if (overlaps && given.options.tflops > 0) options.progress_thread = UseThread::always;
  Context context(options);
  const std::vector<std::string> backends = backends_to_run(context, given.backends);
  ReplayTurns turns(context, schedule, given.options, backends, given.calibrate);
  for (int round = 0; round < given.steps; ++round) turns.take(static_cast<std::size_t>(round));
  if (context.rank() == 0) {
    report(given, folder.path(), backends,
           {turns.took(), turns.by_parts(), by_table(given, context, schedule, turns.places(), backends)},
           context.size());
  }
  return 0;
}

int run_replay(const ReplayArguments& given) {
  std::optional<TraceFolder> shared;
  if (!given.table.empty()) static_cast<void>(route::Table::load(given.table));  // complain once
  if (!find_place(process_environment())) {  // complain once, before any rank starts
    const replay::WorldSchedule schedule = replay::read_schedule(given.schedule);
    static_cast<void>(schedule.of(0, given.ranks > 0 ? given.ranks : std::max(1, schedule.world)));
    setenv(folder_variable, shared.emplace(given.trace).path().c_str(), 1);
    if (given.ranks == 0 && schedule.world > 1) {
      throw Error(ErrorKind::invalid,
                  fmt::format("the schedule is of {} ranks; add -n {}", schedule.world, schedule.world));
    }
  }
  std::vector<std::string> named = parse_list(given.backends);
  std::erase(named, "auto");  // no library that the launcher must know
  return on_ranks(given.ranks, fmt::format("{}", fmt::join(named, ",")), [&] { return replay_here(given); });
}

}  // namespace

void add_replay(CLI::App& app) {
  auto given = std::make_shared<ReplayArguments>();
  given->options.tflops = 100;
  CLI::App* command = add_command(
      app, "replay", "Runs a schedule for real: its operations on the runtime, its computation as time",
      "medley plan --model pythia-70m --layout dp=4 --framework ddp --schedule step.json\n"
      "  medley replay step.json -n 4 --backends shm,auto --trace out/step && \\\n"
      "      medley reconcile out/step --schedule step.json --assert",
      [given] { return run_replay(*given); });
  command->add_option("SCHEDULE", given->schedule, "What medley plan --schedule wrote")->required();
  command
      ->add_option("-n,--nproc-per-node", given->ranks, "Ranks to start on this host; none under a launcher")
      ->check(CLI::Range(1, 4096));
  command->add_option("--backends", given->backends,
                      "Backends that carry the operations; several take turns, step by step; auto: the "
                      "runtime's choice (default: all that work here)");
  command->add_option("--table", given->table,
                      "A route table that auto follows and that a step's time is predicted by");
  command->add_flag("--calibrate", given->calibrate,
                    "Before each step, time its operations one at a time, and predict the step from those");
  command->add_option("--trace", given->trace, "Keep the recording in this folder");
  command->add_option("--steps", given->steps, "Steps over each backend")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--scale", given->options.scale,
                   "All sizes and times are multiplied by it, for hosts that are too small")
      ->check(CLI::Range(1e-9, 1e3))
      ->capture_default_str();
  command
      ->add_option("--tflops", given->options.tflops,
                   "How fast the GEMMs are, as time that passes; 0: at once")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--memory-gbs", given->options.memory_gbs, "How fast memory-bound parts are, in GB/s")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command->add_option("--json", given->json, "Write step times and rows as JSON; - for stdout");
}

}  // namespace medley::cli

// medley replay: runs a schedule for real, over one backend or over several in interleaved rounds.
#include "replay/replay_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "bootstrap/environment.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "replay/trace_folder.hpp"

namespace medley::cli {
namespace {

struct ReplayArguments {
  replay::ReplayRequest request;
  std::string backends, trace, json;
  int ranks = 0;
};

/// How a command that starts ranks passes them a common folder.
constexpr const char* folder_variable = "MEDLEY_REPLAY_FOLDER";

/// A predicted time and its error.
std::vector<std::string> beside(const std::map<std::string, double>& predicted, const std::string& backend,
                                double took) {
  const auto found = predicted.find(backend);
  if (found == predicted.end()) return {"-", "-"};
  return {fmt::format("{:.1f}", found->second), fmt::format("{:+.0f} %", 100 * (found->second / took - 1))};
}

void print_rows(const replay::ReplayResult& result) {
  const trace::Trace& t = result.trace;
  Table rows({"op", "n", "bytes", "count", "phase", "module", "median µs", "exposed"});
  for (const trace::Row& r : result.summary.rows) {
    rows.add({std::string(name(r.op)), std::to_string(t.groups[r.group].size), std::to_string(r.bytes),
              std::to_string(r.count), r.phase, r.module, fmt::format("{:.2f}", r.median_us),
              r.total_us > 0 ? fmt::format("{:.0f} %", 100 * std::min(1.0, r.exposed_us / r.total_us)) : "-"});
  }
  fmt::print("rank {} of {}, one step of {}\n{}\n", result.summary.rank, result.ranks, result.schedule, rows.str());
}

void print_times(const replay::ReplayResult& result) {
  std::vector<std::string> header{"backend", "step µs"};
  if (!result.by_parts_us.empty()) header.insert(header.end(), {"by its parts", "off by"});
  if (!result.by_table_us.empty()) header.insert(header.end(), {"by the table", "off by"});
  Table times(header);
  for (const std::string& backend : result.backends) {
    const double took = result.step_us.at(backend);
    std::vector<std::string> row{backend, fmt::format("{:.1f}", took)};
    for (const auto* predicted : {&result.by_parts_us, &result.by_table_us}) {
      if (predicted->empty()) continue;
      for (std::string& text : beside(*predicted, backend, took)) row.push_back(std::move(text));
    }
    times.add(row);
  }
  fmt::print("{}", times.str());
}

int replay_here(const ReplayArguments& given) {
  const char* const shared = std::getenv(folder_variable);
  const replay::TraceFolder folder(given.trace.empty() && shared ? shared : given.trace);
  replay::ReplayRequest request = given.request;
  request.backends = parse_list(given.backends);
  request.folder = folder.path();
  const auto place = find_place(process_environment());
  ProgressBar bar(!place || place->rank == 0);
  request.progress = [&](int done, int of) { bar.show(done, of, fmt::format("{} of {} rounds", done, of)); };
  const replay::ReplayResult result = replay::run_replay(request);
  bar.clear();
  if (result.rank != 0) return 0;
  if (result.unknown > 0) {
    fmt::print(stderr,
               "medley replay: {} says nothing about {} operations of the step; where they matter no time is "
               "predicted\n",
               result.table, result.unknown);
  }
  write_json(given.json, replay::to_json(result));
  if (given.json == "-") return 0;
  print_rows(result);
  print_times(result);
  if (!given.trace.empty()) fmt::print("recorded in {}; medley trace shows all of it\n", given.trace);
  return 0;
}

int run_replay(const ReplayArguments& given) {
  std::optional<replay::TraceFolder> shared;
  if (!find_place(process_environment())) {
    replay::check_replay(given.request, given.ranks);  // report errors once, before any rank starts
    check_outputs({given.json});
    setenv(folder_variable, shared.emplace(given.trace).path().c_str(), 1);
  }
  return on_ranks(given.ranks, given.backends, [&] { return replay_here(given); });
}

}  // namespace

void add_replay(CLI::App& app) {
  auto given = std::make_shared<ReplayArguments>();
  given->request.options.tflops = 100;
  CLI::App* command =
      add_command(app, "replay", "Runs a schedule for real: its operations on the runtime, its computation as time",
                  "medley plan --model pythia-70m --layout dp=4 --framework ddp --schedule step.json\n"
                  "  medley replay step.json -n 4 --backends shm,auto --trace out/step && \\\n"
                  "      medley reconcile out/step --schedule step.json --assert",
                  [given] { return run_replay(*given); });
  command
      ->add_option("SCHEDULE", given->request.schedule,
                   "A file that medley plan --schedule or medley trace --schedule wrote")
      ->required();
  command->add_option("-n,--nproc-per-node", given->ranks, "Ranks to start on this host; none under a launcher")
      ->check(whole(1, 4096));
  command
      ->add_option("--backends", given->backends,
                   "Backends that carry the operations; several are interleaved, step by step; auto: the "
                   "runtime's choice (default: all that work here; mpi where it is listed or MPI starts the ranks)")
      ->check(known_backends());
  names_file(command->add_option("--table", given->request.table,
                                 "A route table that auto follows and that a step's time is predicted by"));
  command->add_flag("--calibrate", given->request.calibrate,
                    "Before each step, time its operations one at a time, and predict the step from those");
  names_file(command->add_option("--trace", given->trace, "Keep the recording in this folder"), "DIR");
  command->add_option("--steps", given->request.steps, "Steps over each backend")
      ->check(whole(1, 100000))
      ->capture_default_str();
  command
      ->add_option("--scale", given->request.options.scale,
                   "All sizes and times are multiplied by it, for hosts that are too small")
      ->check(between(1e-9, 1e3))
      ->capture_default_str();
  command
      ->add_option("--tflops", given->request.options.tflops,
                   "Speed of the GEMMs in TFLOP/s; the replay waits as long as they would take; 0: not at all")
      ->check(between(0.0, 1e6))
      ->capture_default_str();
  command->add_option("--memory-gbs", given->request.options.memory_gbs, "Speed of memory-bound parts, in GB/s")
      ->check(between(1.0, 1e6))
      ->capture_default_str();
  add_json(*command, given->json, "step times and rows");
}

}  // namespace medley::cli

// medley tune: measures the routes of this job's shapes and writes a route table.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <medley/error.hpp>

#include "bootstrap/environment.hpp"
#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/terminal.hpp"
#include "cli/tune_export.hpp"
#include "cli/tune_print.hpp"
#include "compress/spec.hpp"
#include "replay/replayed_step.hpp"
#include "tune/check_request.hpp"
#include "tune/mix_step.hpp"
#include "tune/nccl_sweep.hpp"
#include "tune/nccl_variant.hpp"
#include "tune/sizes.hpp"
#include "tune/tune_job.hpp"

namespace medley::cli {
namespace {

struct TuneArguments {
  int ranks = 0;
  std::string backends, ops = "all", sizes = "4:16M", dtypes = "f32", memory = "host", codecs, schedule, file, json;
  std::string export_for, table, nccl;
  double seconds = 60;
  bool replace = false;
  replay::ReplayOptions replay{.tflops = 100};  // of --for SCHEDULE
  const CLI::App* command = nullptr;
};

std::atomic<bool> interrupted{false};

void stop_gently() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second one ends it at once
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

tune::TuneRequest request_of(const TuneArguments& given) {
  tune::TuneRequest request{.options = {}, .file = given.file};
  tune::TuneOptions& options = request.options;
  options.ops = ops_of(given.ops);
  const auto [first, last] = parse_size_range(given.sizes);
  options.sizes = tune::size_ladder(first, last);
  options.backends = parse_list(given.backends);
  options.memory = memory_of_word(given.memory);
  options.seconds = given.seconds;
  for (const std::string& text : parse_list(given.codecs)) {
    const compress::Spec spec = compress::parse_spec(text);
    if (!spec.lossy()) {
      throw Error(
          ErrorKind::invalid,
          fmt::format("--compress {}: the time of a lossless codec depends on the data, which tune does not know; "
                      "name it in a rule where it pays",
                      text));
    }
    options.codecs.push_back(spec.text());
  }
  options.dtypes.clear();
  for (const std::string& word : parse_list(given.dtypes)) options.dtypes.push_back(dtype_of_word(word));
  if (!given.schedule.empty()) {
    const auto place = find_place(process_environment());
    replay::tune_for(given.schedule, given.replay, place ? place->size : given.ranks, request);
    request.replace = given.replace;
    return request;
  }
  if (options.dtypes.empty()) throw Error(ErrorKind::invalid, "--dtype lists no element type");
  return request;
}

tune::TuneResult run_and_sweep(const TuneArguments& given, const tune::TuneJobHooks& hooks) {
  if (given.nccl.empty()) return tune::run_tune(request_of(given), hooks);
  tune::TuneRequest request = request_of(given);
  request.options.seconds /= 2;  // half for all routes, half for NCCL's own algorithms
  tune::TuneResult tuned = tune::run_tune(request, hooks);
  const auto variants = tune::parse_nccl_variants(given.nccl);
  request.options.ops.erase(
      std::remove_if(request.options.ops.begin(), request.options.ops.end(), [](Op op) { return !is_collective(op); }),
      request.options.ops.end());
  const tune::NcclSweepResult swept = tune::sweep_nccl(request, std::move(tuned), variants, hooks);
  for (const std::string& refused : swept.refused) {
    if (swept.tuned.rank == 0) fmt::print(stderr, "medley tune: left out {}\n", refused);
  }
  return swept.tuned;
}

int tune_here(const TuneArguments& given) {
  stop_gently();
  ProgressBar bar;
  const tune::TuneResult result = run_and_sweep(
      given, {.progress =
                  [&](const tune::TuneProgress& now) {
                    bar.show(now.seconds, given.seconds,
                             fmt::format("{} of {} cells, {}", now.done, std::max(now.done, now.of), now.now));
                  },
              .stop = [] { return interrupted.load(); }});
  if (result.rank != 0) return 0;
  bar.clear();
  if (interrupted) fmt::print(stderr, "medley tune: stopped; the same command goes on where this one ended\n");
  if (given.json != "-") fmt::print("{}", text_of(result));
  write_json(given.json, tune::to_json(result));
  return 0;
}

void check_nccl(const TuneArguments& given) {
  static_cast<void>(tune::parse_nccl_variants(given.nccl));
  if (given.memory != "cuda")
    throw Error(ErrorKind::invalid, "--nccl measures NCCL's algorithms, so it needs --memory cuda");
}

/// Reports errors once, before any rank starts; a launcher's ranks find them together.
void check(const TuneArguments& given) {
  if (!given.nccl.empty()) check_nccl(given);
  if (!given.schedule.empty()) refuse_beside(*given.command, "--for", {"--op", "--sizes", "--dtype", "--compress"});
  if (tune::is_mix(given.schedule)) refuse_beside(*given.command, "--for " + given.schedule, {"--scale", "--tflops"});
  const tune::TuneRequest request = request_of(given);
  if (find_place(process_environment())) return;
  tune::check(request);
  check_outputs({given.json});
}

int run_tune(const TuneArguments& given) {
  if (given.export_for.empty()) {
    check(given);
    return on_ranks(given.ranks, given.backends, [&] { return tune_here(given); });
  }
  refuse_beside(*given.command, "--export",
                {"--for", "--backends", "--op", "--memory", "--dtype", "--compress", "--nccl", "--json"});
  if (given.export_for != "openmpi")
    refuse_beside(*given.command, "--export " + given.export_for, {"--sizes", "--seconds"});
  return run_export(
      {given.ranks, given.export_for, given.file, given.table, given.sizes, given.seconds},
      [] { return interrupted.load(); }, stop_gently);
}

}  // namespace

void add_tune(CLI::App& app) {
  auto given = std::make_shared<TuneArguments>();
  CLI::App* tune = add_command(app, "tune", "Measure all routes and write a route table",
                               "medley tune -n 2 --seconds 60 -o routes.json", [given] { return run_tune(*given); });
  given->command = tune;
  tune->add_option("-n,--nproc-per-node", given->ranks, "Ranks to start on this host; none under a launcher")
      ->check(whole(2, 4096));
  names_file(tune->add_option(
      "--for", given->schedule,
      "Tune a whole step under load: a file that medley plan --schedule or medley trace --schedule wrote, or one of the mixes moe, dlrm and dense"));
  tune->add_option("--scale", given->replay.scale, "With --for SCHEDULE: all its sizes and times are multiplied by it")
      ->needs("--for")
      ->check(between(1e-9, 1e3))
      ->capture_default_str();
  tune->add_option(
          "--tflops", given->replay.tflops,
          "With --for SCHEDULE: speed of its GEMMs in TFLOP/s; the replay waits as long as they would take; 0: not at all")
      ->needs("--for")
      ->check(between(0.0, 1e6))
      ->capture_default_str();
  tune->add_option("--backends", given->backends,
                   "Backends to measure (default: all that work here; mpi where it is listed or MPI starts the ranks)")
      ->check(known_backends());
  tune->add_option("--seconds", given->seconds, "Seconds that it may take")
      ->capture_default_str()
      ->check(between(0.1, 1e6));
  names_file(tune->add_option(
      "-o,--output", given->file,
      "The table; resumes if it exists (default: the one that contexts look for in the user's cache)"));
  tune->add_flag("--replace", given->replace, "With --for: give up another step that the table was tuned for")
      ->needs("--for");
  tune->add_option("--op", given->ops, "Operations, or all")->capture_default_str();
  tune->add_option("--sizes", given->sizes, "FROM:TO in bytes of the full tensor")->capture_default_str();
  add_memory(*tune, given->memory);
  tune->add_option("--dtype", given->dtypes, "Element types of reductions, one of each class: f32, bf16, i32")
      ->capture_default_str();
  tune->add_option("--compress", given->codecs,
                   "Codecs to measure on every backend too, such as int8,bf16; used where a rule allows them");
  tune->add_option(
      "--nccl", given->nccl,
      "Also measure NCCL's own algorithms and protocols, for NCCL's tuner plugins: all, or a list such as ring_ll128,tree_simple");
  one_of(
      tune->add_option(
          "--export", given->export_for,
          "Write what was measured to -o in the form another library reads: nccl (CSV of its example tuner plugin), ucc (configuration "
          "file), both from --table; openmpi (dynamic rules) measures Open MPI's algorithms"),
      {"nccl", "openmpi", "ucc"});
  names_file(tune->add_option("--table", given->table,
                              "The measured table that --export reads (default: the one that contexts use)")
                 ->needs("--export"));
  add_json(*tune, given->json, "the table also");
}

}  // namespace medley::cli

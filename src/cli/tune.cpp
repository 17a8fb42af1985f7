// medley tune: measures the routes of this job's shapes and writes a route table.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <medley/error.hpp>

#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "replay/needed_operations.hpp"
#include "tune/sizes.hpp"
#include "tune/tune_job.hpp"

namespace medley::cli {
namespace {

struct TuneArguments {
  int ranks = 0;
  std::string backends, ops = "all", sizes = "4:16M", dtypes = "f32", memory = "host", schedule, file, json;
  double seconds = 60;
};

std::atomic<bool> interrupted{false};

void stop_gently() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);   // a second one ends it at once
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
  options.dtypes.clear();
  for (const std::string& word : parse_list(given.dtypes)) options.dtypes.push_back(dtype_of_word(word));
  if (!given.schedule.empty()) {
    const auto needed = replay::needed_operations(replay::read_schedule(given.schedule));
    if (needed.empty())
      throw Error(ErrorKind::invalid, fmt::format("{}: its ranks send nothing", given.schedule));
    tune::measure_exactly(needed, options);
    return request;
  }
  if (options.dtypes.empty()) throw Error(ErrorKind::invalid, "--dtype lists no element type");
  return request;
}

std::string size_of_border(std::int64_t bytes) {
  return bytes == INT64_MAX ? "on" : size_text(bytes);
}

/// One table per shape: a line per size range that one route wins.
std::string winners_text(const route::Table& table) {
  Table lines({"shape", "memory", "op", "dtype", "from", "to", "route", "ahead of the next by up to"});
  for (const tune::Winner& w : tune::winners(table)) {
    lines.add({fmt::format("{} x {}", w.shape.hosts, w.shape.ranks_per_host), std::string(name(w.memory)),
               std::string(name(w.op)), std::string(name(w.dtype)), size_of_border(w.from),
               size_of_border(w.to), w.route.backend + "/" + w.route.algorithm,
               w.ahead > 0 ? fmt::format("{:.2f}x {}/{}", w.ahead, w.rival.backend, w.rival.algorithm) : ""});
  }
  return lines.str();
}

void draw(const tune::TuneProgress& progress, double seconds) {
  const double part = std::min(1.0, progress.seconds / seconds);
  std::string bar(30, ' ');
  std::fill_n(bar.begin(), static_cast<std::ptrdiff_t>(part * 30), '#');
  const double left = std::max(0.0, seconds - progress.seconds);
  fmt::print(stderr, "\r[{}] {:.0f} s left, {} of {} cells, {}\033[K", bar, left, progress.done, std::max(progress.done, progress.of), progress.now);
}

int tune_here(const TuneArguments& given) {
  stop_gently();
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  const tune::TuneResult result =
      tune::run_tune(request_of(given), {.progress =
                                             [&](const tune::TuneProgress& now) {
                                               if (on_terminal) draw(now, given.seconds);
                                             },
                                         .stop = [] { return interrupted.load(); }});
  if (result.rank != 0) return 0;
  if (on_terminal) fmt::print(stderr, "\r\033[K");
  if (interrupted) fmt::print(stderr, "medley tune: stopped; the same command goes on where this one ended\n");
  if (given.json != "-") {
    fmt::print("{}\n{}: {} cells, {} of them new; hash {}\n", winners_text(result.table),
               result.file.string(), result.table.cells().size(), result.new_cells, result.table.hash());
  }
  write_json(given.json, tune::to_json(result));
  return 0;
}

}  // namespace

void add_tune(CLI::App& app) {
  auto given = std::make_shared<TuneArguments>();
  CLI::App* tune = add_command(
      app, "tune", "Measure all routes and write a route table",
      "medley tune -n 2 --seconds 60 -o routes.json", [given] {
        static_cast<void>(tune::table_file(request_of(*given)));  // report errors once, before any rank starts
        return on_ranks(given->ranks, parse_list(given->backends), [given] { return tune_here(*given); });
      });
  tune->add_option("-n,--nproc-per-node", given->ranks, "ranks to start on this host; none under a launcher")->check(CLI::Range(2, 4096));
  tune->add_option("--for", given->schedule, "measure what a step sends and no more: a file that medley plan --schedule wrote");
  tune->add_option("--backends", given->backends, "backends to measure (default: all that work here)")->check(known_backends());
  tune->add_option("--seconds", given->seconds, "how long it may take")->capture_default_str()->check(CLI::Range(0.1, 1e6));
  tune->add_option("-o,--output", given->file, "the table; an existing one is gone on with (default: the one that contexts look for in the user's cache)");
  tune->add_option("--op", given->ops, "operations, or all")->capture_default_str()->excludes("--for");
  tune->add_option("--sizes", given->sizes, "from:to in bytes of the full tensor")->capture_default_str()->excludes("--for");
  add_memory(*tune, given->memory);
  tune->add_option("--dtype", given->dtypes, "element types of reductions, one of each class: f32, bf16, i32")->capture_default_str()->excludes("--for");
  tune->add_option("--json", given->json, "write the table as JSON too; - for stdout");
}

}  // namespace medley::cli

// medley tune: measures the routes of this job's shapes and writes a route table.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <medley/error.hpp>

#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/winners.hpp"
#include "replay/schedule_file.hpp"
#include "tune/sizes.hpp"
#include "tune/tuner.hpp"

namespace medley::cli {
namespace {

using std::chrono::steady_clock;

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

/// What the ranks of a schedule send, each operation, type and size once.
void need_those_of(const std::string& file, tune::TuneOptions& options) {
  options.ops.clear();
  options.dtypes.clear();
  const auto once = [](auto& list, const auto& value) {
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  };
  std::vector<std::tuple<Op, DType, std::int64_t>> needed;
  for (const replay::RankSchedule& rank : replay::read_schedule(file).ranks) {
    for (const replay::Action& action : rank.actions) {
      if (action.kind != replay::Kind::comm) continue;
      once(needed, std::tuple(action.op == Op::recv ? Op::send : action.op, action.dtype, action.bytes));
    }
  }
  for (const auto& [op, dtype, bytes] : needed) {
    options.exactly.push_back({op, dtype, bytes});
    once(options.ops, op);
    if (reduces(op)) once(options.dtypes, dtype);
  }
  if (needed.empty()) throw Error(ErrorKind::invalid, fmt::format("{}: its ranks send nothing", file));
}

tune::TuneOptions options_of(const TuneArguments& given) {
  tune::TuneOptions options;
  options.ops = ops_of(given.ops);
  const auto [first, last] = parse_size_range(given.sizes);
  options.sizes = tune::size_ladder(first, last);
  options.backends = parse_list(given.backends);
  options.memory = memory_of_word(given.memory);
  options.seconds = given.seconds;
  options.dtypes.clear();
  for (const std::string& word : parse_list(given.dtypes)) options.dtypes.push_back(dtype_of_word(word));
  if (!given.schedule.empty()) {
    need_those_of(given.schedule, options);
    return options;
  }
  if (options.dtypes.empty()) throw Error(ErrorKind::invalid, "--dtype lists no element type");
  return options;
}

/// The table to go on with, or a new one. One of another machine is not mixed with this one's.
route::Table table_to_resume(const std::filesystem::path& file, const Context& context) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  route::Table table = route::Table::load(file);
  route::Machine here = route::this_machine();
  for (const BackendInfo& backend : context.backends()) here.libraries[backend.name] = backend.version;
  if (const std::string why = route::misfit(table.machine, here); !why.empty()) {
    throw Error(ErrorKind::invalid, fmt::format("{} is the table of another machine: {}; name another file or remove it", file.string(), why));
  }
  return table;
}

void draw(const tune::TuneProgress& progress, double seconds) {
  const double part = std::min(1.0, progress.seconds / seconds);
  std::string bar(30, ' ');
  std::fill_n(bar.begin(), static_cast<std::ptrdiff_t>(part * 30), '#');
  const double left = std::max(0.0, seconds - progress.seconds);
  fmt::print(stderr, "\r[{}] {:.0f} s left, {} of {} cells, {}\033[K", bar, left, progress.done, std::max(progress.done, progress.of), progress.now);
}

int tune_here(const TuneArguments& given) {
  tune::TuneOptions options = options_of(given);
  stop_gently();
  const std::filesystem::path file = given.file.empty() ? route::cached_table() : std::filesystem::path(given.file);
  Context context(context_for(options.backends, options.memory));
  if (options.memory == Memory::host) bind_to_core(context);   // as in bench
  if (options.backends.empty()) options.backends = available_backends(context);
  const bool reports = context.rank() == 0, on_terminal = reports && isatty(STDERR_FILENO) == 1;
  route::Table table;
  if (reports) table = table_to_resume(file, context);
  const std::size_t had = table.cells().size();
  auto saved = steady_clock::now();
  tune::tune(context, options, table, {
      .changed = [&](const route::Table& now) {
        if (steady_clock::now() - saved < std::chrono::milliseconds(500)) return;   // what a kill can cost
        now.save(file);
        saved = steady_clock::now();
      },
      .progress = [&](const tune::TuneProgress& now) { if (on_terminal) draw(now, options.seconds); },
      .stop = [] { return interrupted.load(); }});
  if (!reports) return 0;
  table.save(file);
  if (on_terminal) fmt::print(stderr, "\r\033[K");
  if (interrupted) fmt::print(stderr, "medley tune: stopped; the same command goes on where this one ended\n");
  if (given.json != "-") {
    fmt::print("{}\n{}: {} cells, {} of them new; hash {}\n", winners_text(table), file.string(), table.cells().size(),
               table.cells().size() - std::min(had, table.cells().size()), table.hash());
  }
  write_json(given.json, nlohmann::ordered_json::parse(table.text()));
  return 0;
}

}  // namespace

void add_tune(CLI::App& app) {
  auto given = std::make_shared<TuneArguments>();
  CLI::App* tune = add_command(app, "tune", "Measure all routes and write a route table", "medley tune -n 2 --seconds 60 -o routes.json",
                               [given] {
                                 static_cast<void>(options_of(*given));   // complain once, before any rank starts
                                 if (given->file.empty() && route::cached_table().empty()) {
                                   throw Error(ErrorKind::invalid, "there is no home folder for a cached table; name a file with -o");
                                 }
                                 return on_ranks(given->ranks, given->backends, [given] { return tune_here(*given); });
                               });
  tune->add_option("-n,--nproc-per-node", given->ranks, "ranks to start on this host; none under a launcher")->check(CLI::Range(2, 4096));
  tune->add_option("--for", given->schedule, "measure what a step sends and no more: a file that medley plan --schedule wrote");
  tune->add_option("--backends", given->backends, "backends to measure (default: all that work here)");
  tune->add_option("--seconds", given->seconds, "how long it may take")->capture_default_str()->check(CLI::Range(0.1, 1e6));
  tune->add_option("-o,--output", given->file, "the table; an existing one is gone on with (default: the one that contexts look for in the user's cache)");
  tune->add_option("--op", given->ops, "operations, or all")->capture_default_str()->excludes("--for");
  tune->add_option("--sizes", given->sizes, "from:to in bytes of the full tensor")->capture_default_str()->excludes("--for");
  add_memory(*tune, given->memory);
  tune->add_option("--dtype", given->dtypes, "element types of reductions, one of each class: f32, bf16, i32")->capture_default_str()->excludes("--for");
  tune->add_option("--json", given->json, "write the table as JSON too; - for stdout");
}

}  // namespace medley::cli

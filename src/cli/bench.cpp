// medley bench: latency and bandwidth of each operation on each backend.
#include "tune/bench.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>

#include "bootstrap/environment.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "tune/sizes.hpp"

namespace medley::cli {
namespace {

struct Arguments {
  int ranks = 0;
  std::string ops = "all_reduce,reduce_scatter,all_gather,all_to_all,broadcast,barrier";
  std::string sizes = "4:64M";
  std::string backends;
  std::string dtype = "f32";
  std::string batch = "1";
  double seconds = 0;
  std::string json;
};

std::vector<Op> ops_of(const std::string& text) {
  std::vector<Op> ops;
  for (const std::string& word : parse_list(text)) {
    if (word == "all") {
      for (int i = 0; i < op_count; ++i) {
        if (static_cast<Op>(i) != Op::recv) ops.push_back(static_cast<Op>(i));   // measured together with send
      }
      continue;
    }
    const auto op = parse_op(word);
    if (!op) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an operation; see medley info", word));
    ops.push_back(*op);
  }
  if (ops.empty()) throw Error(ErrorKind::invalid, "--op lists no operation");
  return ops;
}

tune::BenchOptions options_of(const Arguments& given) {
  tune::BenchOptions options;
  options.ops = ops_of(given.ops);
  const auto [first, last] = parse_size_range(given.sizes);
  options.sizes = tune::size_ladder(first, last);
  options.seconds = given.seconds;
  const auto dtype = parse_dtype(given.dtype);
  if (!dtype) throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not an element type; see medley info", given.dtype));
  options.dtype = *dtype;
  options.batch = given.batch == "auto" ? 0 : static_cast<int>(parse_size(given.batch));
  options.backends = parse_list(given.backends);
  return options;
}

nlohmann::ordered_json json_of(const std::vector<tune::BenchRow>& rows, int ranks, std::size_t hosts) {
  nlohmann::ordered_json out{{"ranks", ranks}, {"hosts", hosts}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& row : rows) {
    out["rows"].push_back({{"op", name(row.op)}, {"backend", row.backend}, {"algorithm", row.algorithm},
                           {"memory", "host"}, {"dtype", name(row.dtype)}, {"bytes", row.bytes},
                           {"median_us", row.time.median}, {"mad_us", row.time.mad}, {"p99_us", row.time.p99},
                           {"algbw", row.algbw}, {"busbw", row.busbw}, {"iterations", row.iterations},
                           {"batch", row.batch}});
  }
  return out;
}

std::string table_of(const std::vector<tune::BenchRow>& rows) {
  Table table({"op", "bytes", "backend", "median µs", "mad", "p99", "algbw GB/s", "busbw GB/s"});
  for (const auto& row : rows) {
    table.add({std::string(name(row.op)), size_text(row.bytes), row.backend, fmt::format("{:.2f}", row.time.median),
               fmt::format("{:.2f}", row.time.mad), fmt::format("{:.2f}", row.time.p99), fmt::format("{:.3f}", row.algbw),
               fmt::format("{:.3f}", row.busbw)});
  }
  return table.str();
}

/// A core for each rank where there are enough, as MPI launchers do; ranks of other launchers are bound by those.
void bind_to_core() {
  const auto place = find_place(process_environment());
  cpu_set_t allowed, one;
  if (!place || place->source != Place::Source::medley || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) < place->size) return;
  CPU_ZERO(&one);
  for (int core = 0, seen = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed) && seen++ == place->rank) CPU_SET(core, &one);
  }
  sched_setaffinity(0, sizeof one, &one);
}

int bench_here(const Arguments& given) {
  bind_to_core();
  tune::BenchOptions options = options_of(given);
  Context context(options.backends);
  if (options.backends.empty()) {
    for (const auto& backend : context.backends()) {
      if (backend.available) options.backends.push_back(backend.name);
    }
  }
  const bool reports = context.rank() == 0;
  const bool on_terminal = reports && isatty(STDERR_FILENO) == 1;
  const auto rows = tune::bench(context, options, [&](std::size_t done, std::size_t of) {
    if (on_terminal) fmt::print(stderr, "\r{} of {} rows{}", done, of, done == of ? "\r\033[K" : "");
  });
  if (!reports) return 0;
  if (given.json != "-") fmt::print("{}", table_of(rows));
  write_json(given.json, json_of(rows, context.size(), 1));
  return 0;
}

}  // namespace

void add_bench(CLI::App& app) {
  auto given = std::make_shared<Arguments>();
  CLI::App* bench = add_command(app, "bench", "Latency and bandwidth of each operation on each backend",
                                "medley bench -n 2 --op all_reduce --sizes 4:64M --json bench.json", [given] {
                                  static_cast<void>(options_of(*given));   // complain once, before any rank starts
                                  return on_ranks(given->ranks, given->backends, [given] { return bench_here(*given); });
                                });
  bench->add_option("-n,--nproc-per-node", given->ranks, "ranks to start on this host; none under a launcher")
      ->check(CLI::Range(1, 4096));
  bench->add_option("--op", given->ops, "operations, or all")->capture_default_str();
  bench->add_option("--sizes", given->sizes, "from:to in bytes of the full tensor, four times more at each step")
      ->capture_default_str();
  bench->add_option("--backends", given->backends, "backends to measure (default: all that work here)");
  bench->add_option("--dtype", given->dtype, "element type")->capture_default_str();
  bench->add_option("--seconds", given->seconds, "time for all rows together (default: 0.1 s a row)")
      ->check(CLI::Range(0.0, 1e6));
  bench->add_option("--batch", given->batch, "operations per sample, back to back (auto: samples of 20 µs)")
      ->capture_default_str();
  bench->add_option("--json", given->json, "write the rows as JSON; - for stdout");
}

}  // namespace medley::cli

// medley bench: latency and bandwidth of each operation on each backend.
#include "tune/bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/write_file.hpp"
#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/mix_report.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "tune/mix.hpp"
#include "tune/sizes.hpp"

namespace medley::cli {
namespace {

struct BenchArguments {
  int ranks = 0;
  std::string ops = "all_reduce,reduce_scatter,all_gather,all_to_all,broadcast,barrier";
  std::string sizes = "4:64M";
  std::string backends, algorithms, table, mixes;
  std::string counts = "uniform";
  std::string dtype = "f32", memory = "host";
  std::string batch = "1";
  double seconds = 0;
  std::string json, csv;
};

tune::BenchOptions options_of(const BenchArguments& given) {
  tune::BenchOptions options;
  options.ops = ops_of(given.ops);
  const auto [first, last] = parse_size_range(given.sizes);
  options.sizes = tune::size_ladder(first, last);
  options.seconds = given.seconds;
  options.dtype = dtype_of_word(given.dtype);
  options.memory = memory_of_word(given.memory);
  options.batch = given.batch == "auto" ? 0 : static_cast<int>(parse_size(given.batch));
  options.wanted.backends = parse_list(given.backends);
  options.wanted.every_algorithm = given.algorithms == "all";
  if (!options.wanted.every_algorithm) options.wanted.algorithms = parse_list(given.algorithms);
  if (given.counts != "uniform") options.counts = {tune::Counts::skewed};
  if (given.counts == "both") options.counts = {tune::Counts::uniform, tune::Counts::skewed};
  return options;
}

tune::MixOptions mixes_of(const BenchArguments& given, const tune::BenchOptions& options) {
  tune::MixOptions mixes{.mixes = parse_list(given.mixes), .backends = options.wanted.backends, .memory = options.memory};
  if (given.mixes == "all") mixes.mixes.assign(std::begin(tune::mix_names), std::end(tune::mix_names));
  for (const std::string& mix : mixes.mixes) {
    if (std::find(std::begin(tune::mix_names), std::end(tune::mix_names), mix) != std::end(tune::mix_names)) continue;
    throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a mix; there are {}", mix, fmt::join(tune::mix_names, ", ")));
  }
  if (given.seconds > 0) mixes.seconds = given.seconds;
  return mixes;
}

const char* counts_name(const tune::BenchRow& row) {
  if (!is_v_form(row.op)) return "";
  return row.counts == tune::Counts::skewed ? "skewed" : "uniform";
}

nlohmann::ordered_json json_of(const std::vector<tune::BenchRow>& rows, const Context& context, const tune::JobClock& clock) {
  nlohmann::ordered_json out{{"ranks", context.size()}, {"hosts", route::shape_of(clock.hosts()).hosts},
                             {"clock", clock.compared() ? "compared" : "common"},
                             {"table", context.table().hash}, {"rows", nlohmann::ordered_json::array()}};
  for (const auto& row : rows) {
    out["rows"].push_back({{"op", name(row.op)}, {"backend", row.backend}, {"algorithm", row.algorithm},
                           {"memory", name(row.memory)}, {"dtype", name(row.dtype)}, {"counts", counts_name(row)}, {"bytes", row.bytes},
                           {"median_us", row.time.median}, {"mad_us", row.time.mad}, {"p99_us", row.time.p99},
                           {"algbw", row.algbw}, {"busbw", row.busbw}, {"iterations", row.iterations},
                           {"batch", row.batch}, {"fastest", row.fastest}});
  }
  return out;
}

void write_csv(const std::string& path, const std::vector<tune::BenchRow>& rows) {
  if (path.empty()) return;
  std::string text = "op,backend,algorithm,memory,dtype,counts,bytes,median_us,mad_us,p99_us,algbw,busbw,iterations,fastest\n";
  for (const auto& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.6f},{:.6f},{},{}\n", name(row.op), row.backend, row.algorithm,
                        name(row.memory), name(row.dtype), counts_name(row), row.bytes, row.time.median, row.time.mad,
                        row.time.p99, row.algbw, row.busbw, row.iterations, row.fastest ? 1 : 0);
  }
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  core::write_file(path, [&](std::ostream& out) { out << text; });
}

std::string table_of(const std::vector<tune::BenchRow>& rows, bool routes_compete) {
  Table table({"op", "bytes", "memory", "backend", "algorithm", "median µs", "mad", "p99", "algbw GB/s", "busbw GB/s", ""});
  for (const auto& row : rows) {
    const std::string op = fmt::format("{}{}{}", name(row.op), row.counts == tune::Counts::skewed ? " " : "",
                                       row.counts == tune::Counts::skewed ? "skewed" : "");
    table.add({op, size_text(row.bytes), std::string(name(row.memory)), row.backend, row.algorithm, fmt::format("{:.2f}", row.time.median),
               fmt::format("{:.2f}", row.time.mad), fmt::format("{:.2f}", row.time.p99), fmt::format("{:.3f}", row.algbw),
               fmt::format("{:.3f}", row.busbw), routes_compete && row.fastest ? "fastest" : ""});
  }
  return table.str();
}

std::vector<std::string> without_auto(std::vector<std::string> backends) {
  std::erase(backends, "auto");
  return backends;
}

/// What a reader of the figures should know, once.
void say(const Context& context, const tune::JobClock& clock, const tune::BenchOptions& options) {
  const auto& listed = options.wanted.backends;
  if (clock.compared()) {
    fmt::print(stderr, "medley bench: the hosts' clocks were compared by messages: times are right to within microseconds of the network\n");
  }
  if (std::find(listed.begin(), listed.end(), "auto") == listed.end()) return;
  const TableInfo& table = context.table();
  if (!table.path.empty()) fmt::print(stderr, "medley bench: auto by {} ({})\n", table.path, table.hash);
  if (!table.note.empty()) fmt::print(stderr, "medley bench: {}\n", table.note);
}

int bench_here(const BenchArguments& given) {
  tune::BenchOptions options = options_of(given);
  ContextOptions wishes = context_for(without_auto(options.wanted.backends), options.memory);
  wishes.table = given.table;
  Context context(wishes);
  if (options.wanted.backends.empty()) {
    options.wanted.backends = available_backends(context);
    if (!given.table.empty() || !given.mixes.empty()) options.wanted.backends.emplace_back("auto");
  }
  // What stages CUDA memory, NCCL over sockets, and the progress of asynchronous operations in the mixes have threads beside the
  // rank's own.
  if (options.memory == Memory::host && given.mixes.empty()) bind_to_core(context);
  tune::JobClock clock(context);
  const bool reports = context.rank() == 0;
  const bool on_terminal = reports && isatty(STDERR_FILENO) == 1;
  if (reports) say(context, clock, options);
  if (!given.mixes.empty()) {
    const auto rows = tune::bench_mixes(context, clock, mixes_of(given, options));
    if (reports) report_mixes(rows, context, given.json);
    return 0;
  }
  const auto rows = tune::bench(context, clock, options, [&](std::size_t done, std::size_t of) {
    if (on_terminal) fmt::print(stderr, "\r{} of {} cells{}", done, of, done == of ? "\r\033[K" : "");
  });
  if (!reports) return 0;
  const bool compete = options.wanted.backends.size() > 1 || !given.algorithms.empty();
  if (given.json != "-" && given.csv != "-") fmt::print("{}", table_of(rows, compete));
  write_json(given.json, json_of(rows, context, clock));
  write_csv(given.csv, rows);
  return 0;
}

}  // namespace

void add_bench(CLI::App& app) {
  auto given = std::make_shared<BenchArguments>();
  CLI::App* bench = add_command(app, "bench", "Latency and bandwidth of each operation on each backend",
                                "medley bench -n 2 --op all_reduce --sizes 4:64M --json bench.json", [given] {
                                  static_cast<void>(mixes_of(*given, options_of(*given)));   // complain once, before any rank starts
                                  const std::string& all = given->backends;
                                  std::string named;   // what the launcher must know: without auto
                                  for (const std::string& backend : without_auto(parse_list(all))) named += (named.empty() ? "" : ",") + backend;
                                  return on_ranks(given->ranks, named, [given] { return bench_here(*given); });
                                });
  bench->add_option("-n,--nproc-per-node", given->ranks, "ranks to start on this host; none under a launcher")
      ->check(CLI::Range(1, 4096));
  bench->add_option("--op", given->ops, "operations, or all")->capture_default_str();
  bench->add_option("--sizes", given->sizes, "from:to in bytes of the full tensor, four times more at each step")
      ->capture_default_str();
  bench->add_option("--backends", given->backends, "backends to measure; auto: by rules and table (default: all that work here)");
  bench->add_option("--algorithms", given->algorithms, "all, or names such as native,ring (default: each backend's own choice)");
  bench->add_option("--counts", given->counts, "how parts of v-collectives differ")->capture_default_str()
      ->check(CLI::IsMember({"uniform", "skewed", "both"}));
  bench->add_option("--table", given->table, "a route table for auto, which then stands in the list");
  bench->add_option("--mix", given->mixes, "whole steps instead of single operations: moe, dlrm, dense or all, with auto in the list");
  add_memory(*bench, given->memory);
  bench->add_option("--dtype", given->dtype, "element type")->capture_default_str();
  bench->add_option("--seconds", given->seconds, "time for all rows together (default: 0.1 s a row)")
      ->check(CLI::Range(0.0, 1e6));
  bench->add_option("--batch", given->batch, "operations per sample, back to back (auto: samples of 20 µs)")
      ->capture_default_str();
  bench->add_option("--json", given->json, "write the rows as JSON; - for stdout");
  bench->add_option("--csv", given->csv, "write the rows as CSV; - for stdout");
}

}  // namespace medley::cli

// medley bench: latency and bandwidth of each operation on each backend.
#include "tune/bench_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/write_file.hpp"
#include "cli/bench_ranks.hpp"
#include "cli/command.hpp"
#include "cli/own_ranks.hpp"
#include "cli/sizes.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cli/via_messages.hpp"
#include "tune/check_request.hpp"
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
  const CLI::App* command = nullptr;
};

tune::BenchRequest request_of(const BenchArguments& given) {
  tune::BenchRequest request{.options = {}, .table = given.table, .mixes = parse_list(given.mixes)};
  tune::BenchOptions& options = request.options;
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
  if (given.mixes == "all") request.mixes.assign(std::begin(tune::mix_names), std::end(tune::mix_names));
  tune::check_mixes(request.mixes);
  return request;
}

std::string table_of(const tune::BenchResult& result) {
  Table table(
      {"op", "bytes", "memory", "backend", "algorithm", "median µs", "mad", "p99", "algbw GB/s", "busbw GB/s", ""});
  bool legend = false;
  for (const tune::BenchRow& row : result.rows) {
    const bool filled = row.algorithm == "filled";
    legend = legend || filled;
    const std::string op = fmt::format("{}{}", name(row.op), row.counts == tune::Counts::skewed ? " skewed" : "");
    table.add({op, size_text(static_cast<std::int64_t>(row.bytes)), std::string(name(row.memory)), row.backend,
               filled ? via_messages : row.algorithm, fmt::format("{:.2f}", row.time.median),
               fmt::format("{:.2f}", row.time.mad), fmt::format("{:.2f}", row.time.p99),
               fmt::format("{:.3f}", row.algbw), fmt::format("{:.3f}", row.busbw),
               result.routes_compete && row.fastest ? "fastest" : ""});
  }
  return table.str() + (legend ? via_messages_legend : "");
}

/// Hierarchical backends are compared separately from single libraries.
std::string table_of(const tune::MixResult& result) {
  const bool pairs =
      std::any_of(result.rows.begin(), result.rows.end(), [](const auto& row) { return row.speedup_over_two > 0; });
  Table table({"mix", "memory", "backend", "median µs", "mad", "against the best library",
               pairs ? "against the best of two" : ""});
  for (const tune::MixRow& row : result.rows) {
    const auto shown = [&](double gain, double low = 0, double high = 0) {
      if (row.backend != "auto" || gain <= 0) return std::string();
      return fmt::format("{:.2f}x as fast", gain) + (high > 0 ? fmt::format(" ({:.2f} to {:.2f})", low, high) : "");
    };
    table.add({row.mix, std::string(name(row.memory)), row.backend, fmt::format("{:.1f}", row.time.median),
               fmt::format("{:.1f}", row.time.mad), shown(row.speedup, row.speedup_low, row.speedup_high),
               shown(row.speedup_over_two)});
  }
  return table.str();
}

void write_csv(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
  } else if (!path.empty()) {
    core::write_file(path, [&](std::ostream& out) { out << text; });
  }
}

/// Notes on the figures, shown once.
void say(const tune::BenchJob& job) {
  if (job.rank != 0) return;
  if (job.clocks_compared) {
    fmt::print(
        stderr,
        "medley bench: the hosts' clocks were compared by messages: times are right to within microseconds of the network\n");
  }
  if (!job.follows_table) return;
  if (!job.table.path.empty()) fmt::print(stderr, "medley bench: auto by {} ({})\n", job.table.path, job.table.hash);
  if (!job.not_open.empty()) {
    const bool one = job.not_open.size() == 1;
    fmt::print(
        stderr,
        "medley bench: the table chooses {}, which {} not open, so auto takes other routes; add {} to --backends\n",
        fmt::join(job.not_open, ", "), one ? "is" : "are", one ? "it" : "them");
  }
  if (!job.table.note.empty()) fmt::print(stderr, "medley bench: {}\n", job.table.note);
}

int bench_here(const BenchArguments& given) {
  std::optional<ProgressBar> bar;
  const tune::BenchHooks hooks{.begin =
                                   [&](const tune::BenchJob& job) {
                                     bar.emplace(job.rank == 0);
                                     say(job);
                                   },
                               .progress =
                                   [&](std::size_t done, std::size_t of) {
                                     bar->show(static_cast<double>(done), static_cast<double>(of),
                                               fmt::format("{} of {} cells", done, of));
                                   }};
  const auto measured = tune::run_bench(request_of(given), hooks);
  bar.reset();
  if (const auto* mixes = std::get_if<tune::MixResult>(&measured)) {
    if (mixes->job.rank != 0) return 0;
    if (given.json != "-") fmt::print("{}", table_of(*mixes));
    write_json(given.json, tune::to_json(*mixes));
    return 0;
  }
  const auto& result = std::get<tune::BenchResult>(measured);
  if (result.job.rank != 0) return 0;
  if (given.json != "-" && given.csv != "-") fmt::print("{}", table_of(result));
  write_json(given.json, tune::to_json(result));
  write_csv(given.csv, tune::to_csv(result.rows));
  return 0;
}

/// Reports errors once, before any rank starts; a launcher's ranks find them together.
void check(const BenchArguments& given) {
  if (!given.mixes.empty())
    refuse_beside(*given.command, "--mix",
                  {"--op", "--sizes", "--algorithms", "--counts", "--dtype", "--batch", "--csv"});
  tune::check(request_of(given));
  check_outputs({given.json, given.csv});
}

}  // namespace

void add_bench(CLI::App& app) {
  auto given = std::make_shared<BenchArguments>();
  CLI::App* bench =
      add_command(app, "bench", "Latency and bandwidth of each operation on each backend",
                  "medley bench -n 2 --op all_reduce --sizes 4:64M --json bench.json", [given] {
                    check(*given);
                    return on_ranks(given->ranks, given->backends, [given] { return bench_here(*given); });
                  });
  given->command = bench;
  bench->add_option("-n,--nproc-per-node", given->ranks, "Ranks to start on this host; none under a launcher")
      ->check(whole(1, 4096));
  bench->add_option("--op", given->ops, "Operations, or all")->capture_default_str();
  bench->add_option("--sizes", given->sizes, "FROM:TO in bytes of the full tensor, four times more at each step")
      ->capture_default_str();
  bench
      ->add_option(
          "--backends", given->backends,
          "Backends to measure; auto: by rules and table (default: all that work here; mpi where it is listed or MPI starts the ranks)")
      ->check(known_backends());
  bench->add_option("--algorithms", given->algorithms,
                    "Algorithms: all, or names such as native,ring (default: each backend's own choice)");
  one_of(bench->add_option("--counts", given->counts, "How the parts of v-collectives differ")->capture_default_str(),
         {"uniform", "skewed", "both"});
  names_file(bench->add_option("--table", given->table, "A route table for auto, which is then added to the list"));
  bench->add_option("--mix", given->mixes,
                    "Whole steps instead of single operations: moe, dlrm, dense or all; auto is added to the list");
  add_memory(*bench, given->memory);
  bench->add_option("--dtype", given->dtype, "Element type")->capture_default_str();
  bench->add_option("--seconds", given->seconds, "Time for all rows together (default: 0.1 s a row)")
      ->check(between(0.0, 1e6));
  bench->add_option("--batch", given->batch, "Operations per sample, back to back (auto: samples of 20 µs)")
      ->capture_default_str();
  add_json(*bench, given->json, "the rows");
  names_file(bench->add_option("--csv", given->csv, "Write the rows as CSV; - for stdout"));
}

}  // namespace medley::cli

#include "tune/bench_job.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <medley/error.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "route/table.hpp"
#include "tune/mix_step.hpp"
#include "tune/rank_setup.hpp"
#include "tune/winners.hpp"

namespace medley::tune {
namespace {

using Json = nlohmann::ordered_json;

const char* counts_name(const BenchRow& row) {
  if (!is_v_collective(row.op)) return "";
  return row.counts == Counts::skewed ? "skewed" : "uniform";
}

std::set<std::string> chosen_backends(const route::Table& table, Memory memory, int hosts) {
  if (table.step) return table.step->memory == memory ? table.step->backends() : std::set<std::string>{};
  std::set<std::string> names;
  for (const Winner& winner : winners(table)) {
    if (winner.memory == memory && winner.shape.hosts <= hosts) names.insert(winner.route.backend);
  }
  return names;
}

BenchJob job_of(const Context& context, const JobClock& clock, const BenchOptions& options) {
  const std::vector<std::string>& backends = options.wanted.backends;
  BenchJob job{.rank = context.rank(),
               .ranks = context.size(),
               .hosts = route::shape_of(clock.hosts()).hosts,
               .clocks_compared = clock.compared(),
               .follows_table = std::find(backends.begin(), backends.end(), "auto") != backends.end(),
               .table = context.table()};
  if (job.rank != 0 || !job.follows_table || job.table.path.empty()) return job;
  const std::vector<std::string> open = available_backends(context);
  for (const std::string& name : chosen_backends(route::Table::load(job.table.path), options.memory, job.hosts)) {
    if (std::find(open.begin(), open.end(), name) == open.end()) job.not_open.push_back(name);
  }
  return job;
}

}  // namespace

void check_mixes(const std::vector<std::string>& mixes) {
  for (const std::string& mix : mixes) {
    if (is_mix(mix)) continue;
    throw Error(ErrorKind::invalid, fmt::format("\"{}\" is not a mix; there are {}", mix, fmt::join(mix_names, ", ")));
  }
}

std::variant<BenchResult, MixResult> run_bench(const BenchRequest& request, const BenchHooks& hooks) {
  check_mixes(request.mixes);
  BenchOptions options = request.options;
  ContextOptions wishes = context_for(backends_to_open(options.wanted.backends), options.memory);
  wishes.table = request.table;
  Context context(wishes);
  std::vector<std::string>& backends = options.wanted.backends;
  if (backends.empty()) {
    backends = available_backends(context);
    if (!request.table.empty() || !request.mixes.empty()) backends.emplace_back("auto");
  }
  // What stages CUDA memory, and NCCL over sockets, have threads beside the rank's own.
  if (options.memory == Memory::host) bind_to_core(context);
  JobClock clock(context);
  const BenchJob job = job_of(context, clock, options);
  hooks.begin(job);
  if (!request.mixes.empty()) {
    MixOptions mixes{.mixes = request.mixes, .backends = backends, .memory = options.memory};
    if (options.seconds > 0) mixes.seconds = options.seconds;
    return MixResult{job, bench_mixes(context, clock, mixes)};
  }
  const bool compete = backends.size() > 1 || options.wanted.every_algorithm || !options.wanted.algorithms.empty();
  return BenchResult{job, bench(context, clock, options, hooks.progress), compete};
}

Json to_json(const BenchResult& result) {
  const BenchJob& job = result.job;
  Json out{{"ranks", job.ranks},
           {"hosts", job.hosts},
           {"clock", job.clocks_compared ? "compared" : "common"},
           {"table", job.table.hash},
           {"rows", Json::array()}};
  for (const BenchRow& row : result.rows) {
    out["rows"].push_back({{"op", name(row.op)},
                           {"backend", row.backend},
                           {"algorithm", row.algorithm},
                           {"memory", name(row.memory)},
                           {"dtype", name(row.dtype)},
                           {"counts", counts_name(row)},
                           {"bytes", row.bytes},
                           {"median_us", row.time.median},
                           {"mad_us", row.time.mad},
                           {"p99_us", row.time.p99},
                           {"algbw", row.algbw},
                           {"busbw", row.busbw},
                           {"iterations", row.iterations},
                           {"batch", row.batch},
                           {"fastest", row.fastest}});
  }
  return out;
}

Json to_json(const MixResult& result) {
  Json out{{"ranks", result.job.ranks},
           {"hosts", result.job.hosts},
           {"table", result.job.table.hash},
           {"mixes", Json::array()}};
  for (const MixRow& row : result.rows) {
    out["mixes"].push_back({{"mix", row.mix},
                            {"backend", row.backend},
                            {"memory", name(row.memory)},
                            {"median_us", row.time.median},
                            {"mad_us", row.time.mad},
                            {"p99_us", row.time.p99},
                            {"iterations", row.iterations},
                            {"speedup", row.speedup}});
    if (row.speedup_high > 0)
      out["mixes"].back().update({{"speedup_low", row.speedup_low}, {"speedup_high", row.speedup_high}});
    if (row.speedup_over_two > 0) out["mixes"].back()["speedup_over_two"] = row.speedup_over_two;
  }
  return out;
}

std::string to_csv(const std::vector<BenchRow>& rows) {
  std::string text =
      "op,backend,algorithm,memory,dtype,counts,bytes,median_us,mad_us,p99_us,algbw,busbw,iterations,"
      "fastest\n";
  for (const BenchRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.6f},{:.6f},{},{}\n", name(row.op), row.backend,
                        row.algorithm, name(row.memory), name(row.dtype), counts_name(row), row.bytes, row.time.median,
                        row.time.mad, row.time.p99, row.algbw, row.busbw, row.iterations, row.fastest ? 1 : 0);
  }
  return text;
}

}  // namespace medley::tune

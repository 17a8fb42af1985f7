#include "tune/bench.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tune/race.hpp"
#include "tune/sizes.hpp"

namespace medley::tune {
namespace {

struct Cell {
  Op op;
  std::size_t bytes;
  Counts counts;
};

std::vector<Cell> cells_of(const BenchOptions& options, int ranks) {
  std::vector<Cell> cells;
  for (const Op op : options.ops) {
    std::optional<std::size_t> last;
    for (const std::size_t bytes : options.sizes) {
      const std::size_t elements = elements_of(op, bytes, size_of(options.dtype), ranks);
      if (elements == last) continue;  // rounding up gave the previous row's size
      last = elements;
      for (const Counts counts : options.counts) {
        if (counts == Counts::uniform || is_v_collective(op)) cells.push_back({op, bytes, counts});
      }
      if (op == Op::barrier) break;
    }
  }
  return cells;
}

constexpr int least_samples = 5;  // even when they exceed the time budget
constexpr std::size_t most_samples = 100'000;
/// A route far behind needs fewer samples or no more: its time is better spent on close ones.
void drop_the_slow(Race& race, double far_slower, bool Race::Candidate::*mark) {
  double best = INFINITY;
  for (const Race::Candidate& candidate : race.candidates) {
    if (!candidate.out && !candidate.rare) best = std::min(best, median_interval(candidate.samples_us).high);
  }
  for (Race::Candidate& candidate : race.candidates) {
    if (median_interval(candidate.samples_us).low > far_slower * best) candidate.*mark = true;
  }
}

/// Measures all routes of a cell, interleaved, until its time is used. Every rank sees the same samples, so all drop
/// the same routes.
void measure_interleaved(JobClock& clock, Workload& workload, Race& race, double seconds, int batch) {
  race.warm_up(clock, workload, 20, 1000);
  if (batch > 0) {
    for (Race::Candidate& candidate : race.candidates) candidate.batch = batch;
  }
  const double end = clock.seconds() + seconds;
  double now = 0;
  for (std::size_t round = 0; round < most_samples && (now < end || round < least_samples); ++round) {
    now = clock.seconds_at(race.run_round(clock, workload, round));
    if (round + 1 == far_behind_samples) drop_the_slow(race, far_behind_ratio, &Race::Candidate::out);
    if ((round + 1) % 20 == 0) drop_the_slow(race, 1.5, &Race::Candidate::rare);
  }
}

}  // namespace

std::vector<BenchRow> bench(Context& context, JobClock& clock, const BenchOptions& options,
                            const std::function<void(std::size_t, std::size_t)>& progress) {
  Comm world = context.world();
  const std::vector<Cell> cells = cells_of(options, world.size());
  std::vector<Op> ops;
  for (const Cell& cell : cells) {
    if (ops.empty() || ops.back() != cell.op) ops.push_back(cell.op);
  }
  check_algorithms(world, ops, options.dtype, options.memory, options.wanted);
  std::vector<BenchRow> rows;
  std::vector<Candidate> routes;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    if (i == 0 || cells[i - 1].op != cell.op)
      routes = candidates(world, cell.op, options.dtype, options.memory, options.wanted);
    Workload workload(world, cell.op, cell.bytes, options.dtype, options.memory, cell.counts);
    Race race;
    for (const Candidate& candidate : routes) race.add(candidate.route);
    const double seconds = options.seconds > 0 ? options.seconds / static_cast<double>(cells.size())
                                               : 0.1 * static_cast<double>(routes.size());
    measure_interleaved(clock, workload, race, seconds, options.batch);
    const std::size_t first = rows.size();
    for (std::size_t r = 0; r < routes.size(); ++r) {
      const Race::Candidate& measured = race.candidates[r];
      BenchRow row{.op = cell.op,
                   .backend = routes[r].backend,
                   .algorithm = routes[r].algorithm,
                   .memory = options.memory,
                   .dtype = options.dtype,
                   .counts = cell.counts,
                   .bytes = workload.bytes(),
                   .time = summarize(measured.samples_us),
                   .iterations = measured.samples_us.size(),
                   .batch = measured.batch};
      row.algbw = static_cast<double>(row.bytes) / row.time.median / 1e3;
      row.busbw = row.algbw * bus_factor(cell.op, world.size());
      rows.push_back(row);
    }
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
    if (begin != rows.end()) {
      std::min_element(begin, rows.end(), [](const auto& a, const auto& b) {
        return a.time.median < b.time.median;
      })->fastest = true;
    }
    progress(i + 1, cells.size());
  }
  return rows;
}

}  // namespace medley::tune

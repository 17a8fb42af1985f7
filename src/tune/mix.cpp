#include "tune/mix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "route/pair_name.hpp"
#include "tune/candidates.hpp"
#include "tune/cell_statistics.hpp"
#include "tune/mix_step.hpp"
#include "tune/race.hpp"

namespace medley::tune {
namespace {

/// One mix, with the interface that a race of backends needs.
class MixWorkload {
 public:
  explicit MixWorkload(MixStep& step) : step_(step) {}
  void check(const Choice& route) { step_.check(route); }
  void run(const Choice& route, int times = 1) {
    for (int i = 0; i < times; ++i) step_.run(route);
  }
  Sample time(JobClock& clock, const Choice& route, int times = 1) {
    return clock.time([&] { run(route, times); });
  }

 private:
  MixStep& step_;
};

/// The fastest row of a mix over one library, or over a backend made of two; null: none.
const MixRow* fastest_of(const std::vector<MixRow>& rows, std::string_view mix, bool made_of_two) {
  const MixRow* best = nullptr;
  for (const MixRow& row : rows) {
    if (row.mix != mix || row.backend == "auto" || route::is_made_of_two(row.backend) != made_of_two) continue;
    if (!best || row.time.median < best->time.median) best = &row;
  }
  return best;
}

struct Gain {
  double median = 0, low = 0, high = 0;
};

/// How much faster a row is than another. Samples of one round see the same noise, so ratios are formed within rounds.
Gain gain_over(const MixRow* other, const MixRow& row) {
  if (!other) return {};
  if (row.samples_us.empty() || row.samples_us.size() != other->samples_us.size())
    return {other->time.median / row.time.median, 0, 0};
  std::vector<double> ratios;
  for (std::size_t i = 0; i < row.samples_us.size(); ++i) ratios.push_back(other->samples_us[i] / row.samples_us[i]);
  const Interval interval = median_interval(ratios);
  return {median(std::move(ratios)), interval.low, interval.high};
}

}  // namespace

void compare_mixes(std::vector<MixRow>& rows) {
  for (MixRow& row : rows) {
    const Gain gain = gain_over(fastest_of(rows, row.mix, false), row);
    row.speedup = gain.median, row.speedup_low = gain.low, row.speedup_high = gain.high;
    row.speedup_over_two = gain_over(fastest_of(rows, row.mix, true), row).median;
  }
}

std::vector<MixRow> bench_mixes(Context& context, JobClock& clock, const MixOptions& options) {
  Comm world = context.world();
  const std::vector<Candidate> routes =
      candidates(world, Op::all_reduce, DType::f32, options.memory, {options.backends});
  if (routes.empty()) {
    throw Error(ErrorKind::unavailable, fmt::format("none of the backends {} moves {} memory between these ranks",
                                                    fmt::join(options.backends, ", "), name(options.memory)));
  }
  std::vector<MixRow> rows;
  for (const std::string& mix : options.mixes) {
    MixStep step(world, mix, options.memory, clock.hosts());
    MixWorkload workload(step);
    Race race(after_step);
    for (const Candidate& usable : routes) race.add(usable.route);
    race.warm_up(clock, workload, 0, 1);
    const double end = clock.seconds() + options.seconds / static_cast<double>(options.mixes.size());
    double now = 0;
    for (std::size_t round = 0; round < 5 || now < end; ++round)
      now = clock.seconds_at(race.run_round(clock, workload, round));
    for (std::size_t r = 0; r < routes.size(); ++r) {
      const std::vector<double>& samples = race.candidates[r].samples_us;
      rows.push_back({.mix = mix,
                      .backend = routes[r].backend,
                      .memory = options.memory,
                      .time = summarize(samples),
                      .iterations = samples.size(),
                      .samples_us = samples});
    }
  }
  compare_mixes(rows);
  return rows;
}

}  // namespace medley::tune

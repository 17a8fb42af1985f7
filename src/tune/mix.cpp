#include "tune/mix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "route/pair_name.hpp"
#include "tune/candidates.hpp"
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

/// How much faster a row is than the best of its mix over one library, or over a backend made of two; 0 where
/// there is none.
double gain_over(const std::vector<MixRow>& rows, const MixRow& row, bool made_of_two) {
  double best = INFINITY;
  for (const MixRow& other : rows) {
    if (other.mix == row.mix && other.backend != "auto" && route::is_made_of_two(other.backend) == made_of_two)
      best = std::min(best, other.time.median);
  }
  return std::isinf(best) ? 0 : best / row.time.median;
}

}  // namespace

void compare_mixes(std::vector<MixRow>& rows) {
  for (MixRow& row : rows) {
    row.speedup = gain_over(rows, row, false);
    row.speedup_over_two = gain_over(rows, row, true);
  }
}

std::vector<MixRow> bench_mixes(Context& context, JobClock& clock, const MixOptions& options) {
  Comm world = context.world();
  const std::vector<Candidate> routes = candidates(world, Op::all_reduce, DType::f32, options.memory, {options.backends});
  if (routes.empty()) {
    throw Error(ErrorKind::unavailable, fmt::format("none of the backends {} moves {} memory between these ranks",
                                                    fmt::join(options.backends, ", "), name(options.memory)));
  }
  std::vector<MixRow> rows;
  for (const std::string& mix : options.mixes) {
    MixStep step(world, mix, options.memory, route::shape_of(clock.hosts()));
    MixWorkload workload(step);
    Race race;
    for (const Candidate& usable : routes) race.add(usable.route);
    race.warm_up(clock, workload, 0, 1);
    const double end = clock.seconds() + options.seconds / static_cast<double>(options.mixes.size());
    double now = 0;
    for (std::size_t round = 0; round < 5 || now < end; ++round) now = clock.seconds_at(race.run_round(clock, workload, round));
    for (std::size_t r = 0; r < routes.size(); ++r) {
      const std::vector<double>& samples = race.candidates[r].samples_us;
      rows.push_back({mix, routes[r].backend, options.memory, summarize(samples), samples.size()});
    }
  }
  compare_mixes(rows);
  return rows;
}

}  // namespace medley::tune

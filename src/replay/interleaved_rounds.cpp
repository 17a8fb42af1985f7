#include "replay/interleaved_rounds.hpp"

#include <algorithm>
#include <medley/scope.hpp>

#include "base/host_blocks.hpp"
#include "route/pair_name.hpp"
#include "trace/trace.hpp"
#include "tune/interleave.hpp"
#include "tune/statistics.hpp"

namespace medley::replay {

InterleavedRounds::InterleavedRounds(Context& context, const WorldSchedule& schedule, const ReplayOptions& options,
                                     const std::vector<std::string>& backends, bool parts)
    : schedule_(schedule),
      options_(options),
      backends_(backends),
      world_(context.world()),
      replayer_(context, schedule, options),
      mine_(schedule.of(context.rank(), context.size())),
      steps_us_(backends.size()),
      parts_us_(backends.size()) {
  const Scope before(trace::step_scope);
  places_ = places_of(world_);
  const auto at_once = [](const Action&, const std::vector<int>&) { return 0.0; };
  if (parts) order_ = predict(schedule, places_, options, at_once).order;
}

void InterleavedRounds::run(std::size_t round) {
  for (const std::size_t b : tune::interleaved_order(backends_.size(), round)) {
    const std::string& backend = backends_[b];
    const Router route = [&](const Action& action) -> Via {
      if (backend == "auto") return {};
      const std::vector<int> hosts = hosts_of_ranks(mine_.groups.at(action.group), places_.hosts);
      return {route::backend_on(route::shape_of(hosts), backend, core::in_equal_blocks(hosts))};
    };
    // The first backend changes too: it runs with the caches and threads that the previous backend left.
    for (const bool parts : {round % 2 == 0, round % 2 != 0}) {
      if (!parts) steps_us_[b].push_back(from_last_to_last({replayer_.step(route)}).front());
      if (parts && !order_.empty()) parts_us_[b].push_back(from_last_to_last(replayer_.time_alone(order_, route)));
    }
  }
}

std::vector<double> InterleavedRounds::latest(std::vector<double> times) {
  const Scope between(trace::step_scope);
  world_.all_reduce(times, medley::max);
  return times;
}

/// µs of each from the arrival of its last rank, as predictions count, until all ranks finished. On several machines,
/// whose clocks differ, the longest time that a rank was in it.
std::vector<double> InterleavedRounds::from_last_to_last(const std::vector<std::optional<Span>>& mine) {
  const auto& machines = places_.machines;
  const bool one_clock = std::all_of(machines.begin(), machines.end(), [&](int m) { return m == machines[0]; });
  std::vector<double> begins, ends;
  for (const auto& span : mine) {
    begins.push_back(span && one_clock ? span->begin_us : 0);
    ends.push_back(!span ? 0 : one_clock ? span->end_us : span->end_us - span->begin_us);
  }
  begins = latest(std::move(begins));
  ends = latest(std::move(ends));
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] -= begins[i];
  return ends;
}

std::map<std::string, double> InterleavedRounds::step_us() const {
  std::map<std::string, double> out;
  for (std::size_t b = 0; b < backends_.size(); ++b) out[backends_[b]] = tune::median(steps_us_[b]);
  return out;
}

std::map<std::string, double> InterleavedRounds::predicted_us() const {
  std::map<std::string, double> out;
  if (order_.empty()) return out;
  std::vector<RankSchedule> schedules;
  for (int rank = 0; rank < world_.size(); ++rank) schedules.push_back(schedule_.of(rank, world_.size()));
  for (std::size_t b = 0; b < backends_.size(); ++b) {
    std::vector<double> rounds;
    for (const std::vector<double>& us : parts_us_[b]) {
      const PartTimes times(schedules, order_, us);
      const auto alone = [&](const Action& action, const std::vector<int>& who) { return times.us(action, who); };
      rounds.push_back(predict(schedule_, places_, options_, alone).step_us);
    }
    out[backends_[b]] = tune::median(rounds);
  }
  return out;
}

}  // namespace medley::replay

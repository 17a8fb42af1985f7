#include "cli/replay_turns.hpp"

#include <medley/scope.hpp>

#include "trace/trace.hpp"
#include "tune/statistics.hpp"
#include "tune/turns.hpp"

namespace medley::cli {

ReplayTurns::ReplayTurns(Context& context, const replay::WorldSchedule& schedule,
                         const replay::ReplayOptions& options, const std::vector<std::string>& backends,
                         bool parts)
    : schedule_(schedule),
      options_(options),
      backends_(backends),
      world_(context.world()),
      replayer_(context, schedule, options),
      steps_us_(backends.size()),
      parts_us_(backends.size()) {
  const Scope before(trace::step_scope);
  places_ = replay::places_of(world_);
  const auto at_once = [](const replay::Action&, const std::vector<int>&) { return 0.0; };
  if (parts) order_ = predict(schedule, places_, options, at_once).order;
}

void ReplayTurns::take(std::size_t round) {
  for (const std::size_t b : tune::turns(backends_.size(), round)) {
    const std::string& backend = backends_[b];
    const replay::Router route = [&](const replay::Action&) {
      return backend == "auto" ? std::string_view{} : std::string_view(backend);
    };
    if (!order_.empty()) parts_us_[b].push_back(slowest(replayer_.time_alone(order_, route)));
    steps_us_[b].push_back(replayer_.step(route) * 1e6);
  }
}

void ReplayTurns::finish() {
  for (auto& times : steps_us_) times = slowest(std::move(times));
}

std::vector<double> ReplayTurns::slowest(std::vector<double> times) {
  const Scope between(trace::step_scope);
  world_.all_reduce(times, medley::max);
  return times;
}

std::map<std::string, double> ReplayTurns::took() const {
  std::map<std::string, double> out;
  for (std::size_t b = 0; b < backends_.size(); ++b) out[backends_[b]] = tune::median(steps_us_[b]);
  return out;
}

std::map<std::string, double> ReplayTurns::by_parts() const {
  std::map<std::string, double> out;
  if (order_.empty()) return out;
  std::vector<replay::RankSchedule> schedules;
  for (int rank = 0; rank < world_.size(); ++rank) schedules.push_back(schedule_.of(rank, world_.size()));
  for (std::size_t b = 0; b < backends_.size(); ++b) {
    std::vector<double> rounds;
    for (const std::vector<double>& us : parts_us_[b]) {
      const replay::PartTimes times(schedules, order_, us);
      const auto alone = [&](const replay::Action& action, const std::vector<int>& who) {
        return times.us(action, who);
      };
      rounds.push_back(predict(schedule_, places_, options_, alone).step_us);
    }
    out[backends_[b]] = tune::median(rounds);
  }
  return out;
}

}  // namespace medley::cli

#include "replay/part_times.hpp"

#include "route/key.hpp"

namespace medley::replay {

PartTimes::Key PartTimes::key_of(const Action& action, const std::vector<int>& who) {
  return {who, route::routed_as(action.op), action.dtype, action.bytes};
}

PartTimes::PartTimes(const std::vector<RankSchedule>& schedules, const std::vector<Meeting>& order,
                     const std::vector<double>& us) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const RankSchedule& first = schedules[static_cast<std::size_t>(order[i].who.front())];
    Sum& sum = sums_[key_of(first.actions[order[i].entries.front()], order[i].who)];
    sum.us += us[i];
    ++sum.samples;
  }
}

std::optional<double> PartTimes::us(const Action& action, const std::vector<int>& who) const {
  const auto found = sums_.find(key_of(action, who));
  if (found == sums_.end()) return std::nullopt;
  // Not the median: occasional delays are part of what a step of many operations takes.
  return found->second.us / found->second.samples;
}

}  // namespace medley::replay

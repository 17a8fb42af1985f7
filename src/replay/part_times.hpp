// What the operations of a step took in isolation, over one backend: the mean of all samples of equal operations. A
// prediction composes the step from it.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "replay/meeting.hpp"
#include "replay/schedule_file.hpp"

namespace medley::replay {

class PartTimes {
 public:
  /// `us`: the time of each operation of `order` on its slowest rank; `schedules`: of each rank of the world.
  PartTimes(const std::vector<RankSchedule>& schedules, const std::vector<Meeting>& order,
            const std::vector<double>& us);
  std::optional<double> us(const Action& action, const std::vector<int>& who) const;

 private:
  using Key = std::tuple<std::vector<int>, Op, DType, std::int64_t>;  // ranks, operation, element type, bytes
  static Key key_of(const Action& action, const std::vector<int>& who);
  struct Sum {
    double us = 0, samples = 0;
  };
  std::map<Key, Sum> sums_;
};

}  // namespace medley::replay

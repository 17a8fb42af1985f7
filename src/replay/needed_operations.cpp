#include "replay/needed_operations.hpp"

#include <set>
#include <tuple>

namespace medley::replay {

std::vector<tune::NeededOperation> needed_operations(const WorldSchedule& schedule) {
  std::set<std::tuple<Op, DType, std::int64_t>> known;
  std::vector<tune::NeededOperation> needed;
  for (const RankSchedule& rank : schedule.ranks) {
    for (const Action& action : rank.actions) {
      if (action.kind != Kind::comm) continue;
      const Op op = action.op == Op::recv ? Op::send : action.op;
      if (known.insert({op, action.dtype, action.bytes}).second)
        needed.push_back({op, action.dtype, action.bytes});
    }
  }
  return needed;
}

}  // namespace medley::replay

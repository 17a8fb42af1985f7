#include "algorithms/half.hpp"

#include <algorithm>

#include "algorithms/filled_lane.hpp"

namespace medley::algorithms {

std::unique_ptr<Lane> connect_half(const Half& half, const CommParams& group, const DevicePart& on_device, Lane** on_host) {
  std::unique_ptr<Lane> lane = std::make_unique<FilledLane>(half.backend->connect(group), half.capabilities, std::string(half.backend->name()),
                                                            group.rank, group.size);
  if (on_host) *on_host = lane.get();
  return on_device.stages(half) ? on_device.stage(std::move(lane), group.rank, group.size) : std::move(lane);
}

BackoffPolicy policy_of_both(const Half& one, const Half& other) {
  BackoffPolicy policy = both(BackoffPolicy::of(one.backend->event_count()), BackoffPolicy::of(other.backend->event_count()));
  policy.yields = std::max(policy.yields, BackoffPolicy{}.yields);
  return policy;
}

}  // namespace medley::algorithms

#include "algorithms/half.hpp"

#include <algorithm>

namespace medley::algorithms {

std::unique_ptr<Lane> connect_half(const Half& half, const CommParams& params, const DevicePart& on_device,
                                   Lane** on_host) {
  auto lane =
      std::make_unique<FilledLane>(half.backend->connect(params), half.capabilities, std::string(half.backend->name()),
                                   params.rank, params.size, TagHalf::of_private_lane);
  if (on_host) *on_host = lane.get();
  if (on_device.stages(half)) return on_device.stage(std::move(lane), params.rank, params.size);
  return lane;
}

BackoffPolicy policy_of_both(const Half& one, const Half& other) {
  BackoffPolicy policy =
      shorter(BackoffPolicy::of(one.backend->event_count()), BackoffPolicy::of(other.backend->event_count()));
  policy.yields = std::max(policy.yields, BackoffPolicy{}.yields);
  return policy;
}

}  // namespace medley::algorithms

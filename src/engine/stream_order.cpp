#include "engine/stream_order.hpp"

#include <algorithm>

#include "engine/comm_state.hpp"

namespace medley::core {

void StreamOrder::add_on_device(Operation& operation) {
  const LaneState& lane = *operation.lane;
  if (lane.in_streams && operation.collective()) last_collective_ = &operation;
  if (operation.collective() ? lane.launches_in_phases : lane.in_streams && lane.connects_lazily)
    launching_.push_back(&operation);
}

void StreamOrder::launched(Operation& operation) {
  if (!launching_.empty()) std::erase(launching_, &operation);
  if (!operation.lane->in_streams) return;  // the host makes its progress
  if (operation.needs_host) --needing_host_;
  operation.needs_host = false;
  if (last_collective_ == &operation) last_collective_ = nullptr;
}

void StreamOrder::finished_on_device(Operation& operation) {
  if (last_collective_ == &operation) last_collective_ = nullptr;
  if (!launching_.empty()) std::erase(launching_, &operation);
}

bool StreamOrder::others_need_host(const Operation& waited) const {
  const auto own = std::count_if(waited.batch.begin(), waited.batch.end(),
                                 [](const Operation* member) { return member->needs_host; });
  return needing_host_ > (waited.needs_host ? 1 : 0) + own;
}

}  // namespace medley::core

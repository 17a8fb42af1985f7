#include "engine/stream_order.hpp"

#include <algorithm>

#include "engine/comm_state.hpp"

namespace medley::core {

void StreamOrder::add(Operation& operation) {
  operation.needs_host = true;
  ++needing_host_;
  if (!operation.lane->in_streams) return;
  if (operation.collective()) {
    last_collective_ = &operation;
  } else if (operation.lane->connects_lazily) {
    connecting_.push_back(&operation);
  }
}

void StreamOrder::launched(Operation& operation) {
  if (!operation.lane->in_streams) return;   // the host makes its progress
  if (operation.needs_host) --needing_host_;
  operation.needs_host = false;
  if (last_collective_ == &operation) last_collective_ = nullptr;
  if (!operation.collective()) std::erase(connecting_, &operation);
}

void StreamOrder::finished(Operation& operation) {
  if (operation.needs_host) --needing_host_;
  operation.needs_host = false;
  if (last_collective_ == &operation) last_collective_ = nullptr;
  if (operation.lane->in_streams && !operation.collective()) std::erase(connecting_, &operation);
}

bool StreamOrder::others_need_host(const Operation& waited) const {
  const auto own = std::count_if(waited.batch.begin(), waited.batch.end(), [](const Operation* member) { return member->needs_host; });
  return needing_host_ > (waited.needs_host ? 1 : 0) + own;
}

}  // namespace medley::core

#include "backends/ucx/comm_ids.hpp"

#include <fmt/format.h>

#include <medley/error.hpp>
#include <utility>

namespace medley::ucx {

std::uint16_t CommIds::take() {
  const std::lock_guard lock(mutex_);
  if (fresh_ < max_comms) return static_cast<std::uint16_t>(fresh_++);
  if (free_.empty()) {
    throw Error(ErrorKind::unavailable,
                fmt::format("ucx tells {} comms of a rank apart, and all are in use or not yet destroyed by all "
                            "their members; destroy some",
                            max_comms));
  }
  const std::uint16_t id = free_.front();
  free_.pop_front();
  return id;
}

void CommIds::retire(std::uint16_t id, std::function<bool()> all_left) {
  const std::lock_guard lock(mutex_);
  retired_.push_back({id, std::move(all_left)});
}

void CommIds::reclaim(const std::function<void(std::uint16_t)>& drop) {
  const std::lock_guard lock(mutex_);
  if (fresh_ < max_comms / 2) return;
  // Two for each one retired: the list shrinks even when some members are slow to leave.
  for (int looks = 0; looks < 2 && !retired_.empty(); ++looks) {
    Retired oldest = std::move(retired_.front());
    retired_.pop_front();
    if (oldest.all_left()) {
      drop(oldest.id);
      free_.push_back(oldest.id);
    } else {
      retired_.push_back(std::move(oldest));
    }
  }
}

}  // namespace medley::ucx

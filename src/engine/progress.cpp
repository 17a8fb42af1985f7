#include "engine/progress.hpp"

#include <algorithm>
#include <utility>

#include <medley/sdk/current_error.hpp>

namespace medley::core {

void Progress::remove_active(Operation& operation) {
  if (next_ == &operation) next_ = ActiveList::next(operation);
  if (resume_ == &operation) resume_ = ActiveList::next(operation);
  active_.erase(operation);
  --active_count_;
}

bool Progress::add_another(LaneState& lane) {
  if (std::find(lanes_.begin(), lanes_.end(), &lane) != lanes_.end()) return false;
  lanes_.push_back(&lane);
  return true;
}

bool Progress::add_undelivered(LaneState& lane) {
  if (!lane.has_undelivered() || !add_lane(lane)) return false;
  ++undelivered_lanes_;
  return true;
}

void Progress::remove_lanes(const CommState& comm) {
  std::erase_if(lanes_, [&](const LaneState* lane) { return lane->comm == &comm; });
  count_undelivered();
}

void Progress::count_undelivered() {
  undelivered_lanes_ = static_cast<int>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const LaneState* lane) { return lane->active == 0; }));
}

void Progress::move_lane(LaneState& lane) {
  if (lane.broken) return;
  try {
    lane.filled->progress();
    if (!lane.value_exchange.empty()) lane.value_exchange.poll();
  } catch (...) {
    lane.broken = true;
    events_.on_lane_error(lane, current_error());
  }
}

/// After `complete` the operation may be gone.
[[gnu::always_inline]] inline Poll Progress::look(Operation& operation) {
  try {
    const Poll seen = std::exchange(operation.done, false) ? Poll::complete : operation.transfer->poll();
    if (seen == Poll::moved) moment_ = 0;
    if (seen == Poll::complete) {
      events_.on_complete(operation);
    } else if (!operation.launched) {
      events_.on_poll(operation);
    }
    return seen;
  } catch (...) {
    events_.on_error(operation, current_error());
    return Poll::complete;
  }
}

bool Progress::poll(Operation& operation) {
  return ActiveList::contains(operation) && look(operation) != Poll::waiting;
}

/// Most of them complete now; the others are polled in every pass from here on.
bool Progress::poll_ready() {
  bool any = false;
  while (Polled* const first = ready_.front()) {
    Operation& operation = static_cast<Operation&>(*first);
    ready_.erase(operation);
    if (operation.error) continue;  // its comm has failed meanwhile: it ends with the abort
    if (look(operation) != Poll::complete) add_active(operation);
    any = true;
  }
  return any;
}

bool Progress::poll_from(Operation* first, std::size_t count) {
  bool moved = false;
  next_ = first;
  for (; next_ && count > 0; --count) {
    Operation& operation = *next_;
    next_ = ActiveList::next(operation);  // remove() keeps it valid
    moved = poll(operation) || moved;
  }
  return moved;
}

bool Progress::run(Extent extent) {
  moment_ = 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) move_lane(*lanes_[i]);
  bool moved = poll_ready();
  const std::size_t all = active_count_;
  moved = poll_from(active_.front(), all <= polled_in_a_pass ? all : oldest) || moved;
  if (all > polled_in_a_pass) {
    // The others round-robin: some, or as many as it takes to find one that moved.
    for (std::size_t looked = 0; looked < (extent == Extent::all ? all : others) && (looked == 0 || !moved);
         looked += others) {
      moved = poll_from(resume_ ? resume_ : next_ ? next_ : active_.front(), others) || moved;
      resume_ = next_;
    }
  }
  next_ = nullptr;
  moved = moved || !ready_.empty();  // one that asked meanwhile is polled in the next pass
  std::erase_if(lanes_, [](const LaneState* lane) { return lane->active == 0 && !lane->has_undelivered(); });
  count_undelivered();
  return moved;
}

bool Progress::has_value_exchange() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const LaneState* lane) { return !lane->value_exchange.empty(); });
}

Waiting Progress::how_to_wait() const {
  const bool any_active =
      std::any_of(lanes_.begin(), lanes_.end(), [](const LaneState* lane) { return lane->active > 0; });
  Waiting waiting;
  bool first = true;
  for (const LaneState* lane : lanes_) {
    if (any_active && lane->active == 0) {
      waiting.undelivered = true;
      continue;
    }
    const BackoffPolicy own = BackoffPolicy::of(lane->event_count);
    waiting.policy = first ? own : shorter(waiting.policy, own);
    waiting.event_count = first || waiting.event_count == lane->event_count ? lane->event_count : nullptr;
    first = false;
  }
  return waiting;
}

}  // namespace medley::core

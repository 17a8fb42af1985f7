#include "engine/progress.hpp"

#include <algorithm>

#include <medley/sdk/current_error.hpp>

namespace medley::core {

void Progress::add(Operation& operation) {
  active_.push_back(operation);
  add_lane(*operation.lane);
}

void Progress::remove(Operation& operation) {
  if (!ActiveList::contains(operation)) return;
  if (next_ == &operation) next_ = ActiveList::next(operation);
  if (resume_ == &operation) resume_ = ActiveList::next(operation);
  active_.erase(operation);
}

bool Progress::add_lane(LaneState& lane) {
  if (!lanes_.empty() && lanes_.front() == &lane) return false;   // mostly there is one
  if (std::find(lanes_.begin(), lanes_.end(), &lane) != lanes_.end()) return false;
  lanes_.push_back(&lane);
  return true;
}

bool Progress::add_undelivered(LaneState& lane) {
  if (!lane.has_undelivered() || !add_lane(lane)) return false;
  ++owing_lanes_;
  return true;
}

void Progress::remove_lanes(const CommState& comm) {
  std::erase_if(lanes_, [&](const LaneState* lane) { return lane->comm == &comm; });
  count_owing();
}

void Progress::count_owing() {
  owing_lanes_ = static_cast<int>(std::count_if(lanes_.begin(), lanes_.end(), [](const LaneState* lane) { return lane->active == 0; }));
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

bool Progress::poll(Operation& operation) {
  if (!ActiveList::contains(operation)) return false;
  try {
    const Poll seen = operation.transfer->poll();
    if (seen == Poll::moved) moment_ = 0;
    if (seen == Poll::complete) {
      events_.on_complete(operation);
    } else if (!operation.launched) {
      events_.on_poll(operation);
    }
    return seen != Poll::waiting;
  } catch (...) {
    events_.on_error(operation, current_error());
    return true;
  }
}

bool Progress::poll_from(Operation* first, std::size_t count) {
  bool moved = false;
  next_ = first;
  for (; next_ && count > 0; --count) {
    Operation& operation = *next_;
    next_ = ActiveList::next(operation);   // remove() keeps it valid
    moved = poll(operation) || moved;
  }
  return moved;
}

bool Progress::run(Extent extent) {
  moment_ = 0;
  for (std::size_t i = 0; i < lanes_.size(); ++i) move_lane(*lanes_[i]);
  const std::size_t all = active_.size();
  bool moved = poll_from(active_.front(), all <= polled_in_a_pass ? all : oldest);
  if (all > polled_in_a_pass) {
    // The others round-robin: some, or as many as it takes to find one that moved.
    for (std::size_t looked = 0; looked < (extent == Extent::all ? all : others) && (looked == 0 || !moved); looked += others) {
      moved = poll_from(resume_ ? resume_ : next_ ? next_ : active_.front(), others) || moved;
      resume_ = next_;
    }
  }
  next_ = nullptr;
  std::erase_if(lanes_, [](const LaneState* lane) { return lane->active == 0 && !lane->has_undelivered(); });
  count_owing();
  return moved;
}

bool Progress::has_value_exchange() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const LaneState* lane) { return !lane->value_exchange.empty(); });
}

Waiting Progress::how_to_wait() const {
  const bool any_active = std::any_of(lanes_.begin(), lanes_.end(), [](const LaneState* lane) { return lane->active > 0; });
  Waiting waiting;
  bool first = true;
  for (const LaneState* lane : lanes_) {
    if (any_active && lane->active == 0) {
      waiting.undelivered = true;
      continue;
    }
    const BackoffPolicy own = BackoffPolicy::of(lane->event_count);
    waiting.policy = first ? own : both(waiting.policy, own);
    waiting.event_count = first || waiting.event_count == lane->event_count ? lane->event_count : nullptr;
    first = false;
  }
  return waiting;
}

}  // namespace medley::core

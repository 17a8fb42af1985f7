// The inner operations of a collective that consists of several, each over a lane of its own: polled together, released
// one by one, and abandoned together. Used by collectives in phases and by split ones.
#pragma once

#include <algorithm>
#include <medley/backend.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace medley::algorithms {

class RunningTransfers {
 public:
  /// `started`: null if it was complete at once.
  void add(Transfer* started) {
    if (started) list_.push_back(started);
  }
  bool empty() const { return list_.empty(); }
  const std::vector<Transfer*>& list() const { return list_; }

  /// Releases those that are complete; true when all are. Sets `moved` where one made progress.
  bool poll(bool& moved) {
    for (std::size_t i = 0; i < list_.size();) {
      polled_ = list_[i];
      const Poll seen = polled_->poll();
      moved = moved || seen != Poll::waiting;
      if (seen != Poll::complete) {
        ++i;
        continue;
      }
      list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i));
      polled_->release();
    }
    polled_ = nullptr;
    return list_.empty();
  }
  /// The one whose poll threw; null: none.
  const Transfer* failed() const { return polled_; }
  bool launched() const {
    return std::all_of(list_.begin(), list_.end(), [](Transfer* one) { return one->launched(); });
  }
  bool order(void* stream) const {
    return std::all_of(list_.begin(), list_.end(),
                       [&](Transfer* one) { return one->launched() && one->order(stream); });
  }
  /// `owner` holds all memory that they use.
  void abandon(const std::shared_ptr<const void>& owner) noexcept {
    for (Transfer* one : std::exchange(list_, {})) one->abandon(owner);
  }

 private:
  std::vector<Transfer*> list_;
  Transfer* polled_ = nullptr;
};

}  // namespace medley::algorithms

// How a thread waits before it sleeps: so many polls, then so many yields of its core.
#pragma once

#include <algorithm>
#include <medley/backend.hpp>

namespace medley {

struct BackoffPolicy {
  int spins = 200, yields = 20;   ///< for a library that says nothing
  bool oversubscribed = false;    ///< ranks outnumber their cores

  static BackoffPolicy of(const EventCount* event_count) {
    return event_count ? BackoffPolicy{event_count->spins(), event_count->yields(), event_count->oversubscribed()} : BackoffPolicy{};
  }
  /// The shorter of both, so that ranks that outnumber their cores do not spin because two libraries are at work.
  friend BackoffPolicy both(const BackoffPolicy& a, const BackoffPolicy& b) {
    return {std::min(a.spins, b.spins), std::min(a.yields, b.yields), a.oversubscribed || b.oversubscribed};
  }
};

}  // namespace medley

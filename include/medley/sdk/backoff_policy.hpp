// How a thread backs off before it sleeps: a number of polls, then a number of yields of its core.
#pragma once

#include <algorithm>
#include <medley/backend.hpp>

namespace medley {

struct BackoffPolicy {
  int spins = 200, yields = 20;  ///< default for a library that sets none
  bool oversubscribed = false;   ///< ranks outnumber their cores

  static BackoffPolicy of(const EventCount* event_count) {
    return event_count ? BackoffPolicy{event_count->spins(), event_count->yields(), event_count->oversubscribed()}
                       : BackoffPolicy{};
  }
  /// The shorter of both, so that oversubscribed ranks do not spin merely because two libraries are in use.
  friend BackoffPolicy shorter(const BackoffPolicy& a, const BackoffPolicy& b) {
    return {std::min(a.spins, b.spins), std::min(a.yields, b.yields), a.oversubscribed || b.oversubscribed};
  }
};

}  // namespace medley

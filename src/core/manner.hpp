// How a thread waits before it sleeps: so many polls, then so many yields of its core.
#pragma once

#include <algorithm>
#include <medley/backend.hpp>

namespace medley::core {

struct Manner {
  int spins = 200, yields = 20;   ///< for a library that says nothing
  bool crowded = false;           ///< ranks outnumber their cores

  static Manner of(const Waiter* waiter) {
    return waiter ? Manner{waiter->spins(), waiter->yields(), waiter->crowded()} : Manner{};
  }
  /// As patient as the less patient of both, so that ranks that outnumber their cores do not spin because two libraries are at work.
  friend Manner both(const Manner& a, const Manner& b) {
    return {std::min(a.spins, b.spins), std::min(a.yields, b.yields), a.crowded || b.crowded};
  }
};

}  // namespace medley::core

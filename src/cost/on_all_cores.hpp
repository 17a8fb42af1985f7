// Independent pieces of work, spread over all cores. Used by sweeps of plans and the search for layouts.
#pragma once

#include <cstddef>
#include <functional>

namespace medley::cost {

/// Calls work(i) for every i below `count`, each once, on all cores. `progress` gets the pieces begun and their number, on
/// the calling thread. What either throws there ends the rest; `work` must not throw on the other threads.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work,
                  const std::function<void(std::size_t, std::size_t)>& progress);

}  // namespace medley::cost

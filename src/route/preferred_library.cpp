#include "route/preferred_library.hpp"

#include <cmath>
#include <functional>
#include <map>

#include "route/choose.hpp"
#include "route/pair_name.hpp"

namespace medley::route {
namespace {

using Losses = std::map<std::string, double, std::less<>>;

/// The loss of each library's best route against the best route overall.
Losses losses_in(const Cell& cell, const Usable& usable) {
  Losses losses;
  double best = 0;
  for (const Timing& timing : cell.routes) {  // fastest first: the first of a library is its best
    // Whether the comm has the backend; algorithms belong to other operations
    if (!usable({timing.route.backend, "native"})) continue;
    if (best == 0) best = timing.median_us;
    losses.emplace(between_of(timing.route.backend), std::log(timing.median_us / best));
  }
  return losses;
}

}  // namespace

const std::string& PreferredLibrary::library() {
  if (found_) return *found_;
  Losses whole;
  for (const Cell& cell : table_.cells()) {
    if (cell.key.memory != memory_ || cell.key.shape != shape_) continue;
    for (const auto& [library, loss] : losses_in(cell, usable_)) whole[library] += loss - std::log(absent_ratio);
  }
  double least = INFINITY;
  for (const auto& [library, loss] : whole) {
    if (loss < least) found_ = library, least = loss;
  }
  if (!found_) found_.emplace();
  return *found_;
}

}  // namespace medley::route

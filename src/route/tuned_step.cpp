#include "route/tuned_step.hpp"

#include "route/pair_name.hpp"

namespace medley::route {

const StepTiming* TunedStep::best_library() const noexcept {
  const StepTiming* best = nullptr;
  for (const StepTiming& timing : libraries) {
    if (!is_made_of_two(timing.name) && (!best || timing.median_us < best->median_us)) best = &timing;
  }
  return best;
}

std::set<std::string> TunedStep::backends() const {
  std::set<std::string> names;
  if (!library.empty()) names.insert(library);
  for (const StepRoute& route : routes) names.insert(route.route.backend);
  return names;
}

}  // namespace medley::route

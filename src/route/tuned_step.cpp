#include "route/tuned_step.hpp"

#include <algorithm>

#include "route/pair_name.hpp"

namespace medley::route {

const StepTiming* TunedStep::best_library() const noexcept {
  const std::string& compared = against.empty() ? library : against;
  const auto better = [&](const StepTiming& a, const StepTiming& b) {  // than b
    if ((a.name == compared) != (b.name == compared)) return a.name == compared;
    if (is_made_of_two(a.name) != is_made_of_two(b.name)) return is_made_of_two(b.name);
    return a.median_us < b.median_us;
  };
  const auto best = std::min_element(libraries.begin(), libraries.end(), better);
  return best == libraries.end() ? nullptr : &*best;
}

std::vector<int> TunedStep::hosts() const { return placement.empty() ? hosts_in_blocks(shape) : placement; }

std::set<std::string> TunedStep::backends() const {
  std::set<std::string> names;
  if (!library.empty()) names.insert(library);
  for (const StepRoute& route : routes) names.insert(route.route.backend);
  return names;
}

}  // namespace medley::route

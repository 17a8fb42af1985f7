#include "soak/shrink.hpp"

#include <algorithm>

namespace medley::soak {

std::vector<int> shrink(int steps, const std::function<bool(const std::vector<int>&)>& fails,
                        const std::function<bool()>& enough) {
  std::vector<int> left_out, kept;
  for (int i = 0; i < steps; ++i) kept.push_back(i);
  // From the end: later steps are more often irrelevant.
  for (std::size_t piece = std::max<std::size_t>(kept.size() / 2, 1); piece > 0; piece /= 2) {
    bool again = true;
    while (again) {
      again = false;
      for (std::size_t end = kept.size(); end > 0 && !enough(); end -= std::min(end, piece)) {
        const std::size_t begin = end - std::min(end, piece);
        std::vector<int> candidate = left_out;
        candidate.insert(candidate.end(), kept.begin() + static_cast<std::ptrdiff_t>(begin),
                         kept.begin() + static_cast<std::ptrdiff_t>(end));
        if (!fails(candidate)) continue;
        left_out = candidate;
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(begin), kept.begin() + static_cast<std::ptrdiff_t>(end));
        again = piece == 1;  // removing one step may make another one useless
      }
    }
  }
  std::sort(left_out.begin(), left_out.end());
  return left_out;
}

}  // namespace medley::soak

#include "replay/sharing.hpp"

#include <algorithm>
#include <map>

namespace medley::replay {
namespace {

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

/// The oversubscription of a machine with `busy` ranks: ranks per core, at least 1.
double crowd(int busy, int cores) { return std::max(1.0, static_cast<double>(busy) / std::max(1, cores)); }

}  // namespace

std::vector<double> speeds(const std::vector<const std::vector<int>*>& operations, const Places& places) {
  std::vector<int> at_rank(places.machines.size());
  std::map<int, int> busy;  // ranks of a machine that have something to do
  for (const auto* who : operations) {
    for (const int rank : *who) {
      if (at_rank[index(rank)]++ == 0) ++busy[places.machines[index(rank)]];
    }
  }
  std::vector<double> out;
  for (const auto* who : operations) {
    std::map<int, int> own;
    for (const int rank : *who) ++own[places.machines[index(rank)]];
    double speed = 1;
    for (const int rank : *who) {
      const int machine = places.machines[index(rank)], cores = places.cores[index(rank)];
      const double crowding = crowd(busy[machine], cores) / crowd(own[machine], cores);
      speed = std::min(speed, 1 / (at_rank[index(rank)] * crowding));
    }
    out.push_back(speed);
  }
  return out;
}

}  // namespace medley::replay

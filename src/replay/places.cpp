#include "replay/places.hpp"

#include <sched.h>

#include <algorithm>

#include "tune/job_clock.hpp"
#include "tune/placement.hpp"

namespace medley::replay {
Places places_of(Comm& world) {
  Places places;
  places.hosts = tune::hosts_of(world);
  const std::vector<tune::Placement> all = tune::placement_of_all(world);
  for (const tune::Placement& rank : all) {
    cpu_set_t together;
    CPU_ZERO(&together);
    for (const tune::Placement& other : all) {
      if (other.machine == rank.machine) CPU_OR(&together, &together, &other.cores);
    }
    places.cores.push_back(std::max(1, CPU_COUNT(&together)));
    const auto first =
        std::find_if(all.begin(), all.end(), [&](const tune::Placement& o) { return o.machine == rank.machine; });
    places.machines.push_back(static_cast<int>(first - all.begin()));
  }
  return places;
}

std::vector<int> hosts_of_ranks(const std::vector<int>& who, const std::vector<int>& hosts) {
  std::vector<int> of_each;
  for (const int rank : who) of_each.push_back(hosts[static_cast<std::size_t>(rank)]);
  return of_each;
}

}  // namespace medley::replay

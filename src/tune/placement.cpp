#include "tune/placement.hpp"

#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>

#include "bootstrap/host.hpp"

namespace medley::tune {

std::vector<Placement> placement_of_all(const Comm& comm) {
  Placement mine{std::hash<std::string>{}(kernel_identity()), {}};
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_ZERO(&mine.cores);
  return gather_from_all(comm, mine);
}

std::string advice_on_cores(const std::vector<Placement>& all, const std::vector<int>& hosts) {
  if (std::set<int>(hosts.begin(), hosts.end()).size() < 2) return {};
  for (const Placement& one : all) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    int ranks = 0;
    for (const Placement& other : all) {
      if (other.machine != one.machine) continue;
      ++ranks;
      CPU_OR(&cores, &cores, &other.cores);
    }
    if (CPU_COUNT(&cores) == 0 || ranks < CPU_COUNT(&cores)) continue;
    return fmt::format(
        "leave a core per host: {} ranks fill all {} cores of a machine, and the work of its network takes time from them",
        ranks, CPU_COUNT(&cores));
  }
  return {};
}

}  // namespace medley::tune

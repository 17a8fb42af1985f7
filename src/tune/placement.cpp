#include "tune/placement.hpp"

#include <functional>
#include <string>

#include "bootstrap/host.hpp"

namespace medley::tune {

std::vector<Placement> placement_of_all(const Comm& comm) {
  Placement mine{std::hash<std::string>{}(kernel_identity()), {}};
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_ZERO(&mine.cores);
  return gather_from_all(comm, mine);
}

}  // namespace medley::tune

#include "tune/told_by_all.hpp"

#include <functional>
#include <string>

#include "bootstrap/host.hpp"

namespace medley::tune {

std::vector<Whereabouts> whereabouts_of_all(const Comm& comm) {
  Whereabouts mine{std::hash<std::string>{}(kernel_identity()), {}};
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_ZERO(&mine.cores);
  return told_by_all(comm, mine);
}

}  // namespace medley::tune

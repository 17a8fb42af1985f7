#include "replay/places.hpp"

#include <sched.h>

#include <algorithm>
#include <functional>

#include "bootstrap/host.hpp"
#include "tune/job_clock.hpp"

namespace medley::replay {
namespace {

/// What a rank tells the others: its machine and the cores it may use.
struct Told {
  std::int64_t machine = 0;
  cpu_set_t cores{};
};
constexpr std::size_t words = sizeof(Told) / sizeof(std::int64_t);
static_assert(sizeof(Told) % sizeof(std::int64_t) == 0);

std::vector<Told> told_by_all(Comm& world) {
  std::vector<Told> all(static_cast<std::size_t>(world.size()));
  Told mine{static_cast<std::int64_t>(std::hash<std::string>{}(kernel_identity())), {}};
  if (sched_getaffinity(0, sizeof mine.cores, &mine.cores) != 0) CPU_SET(0, &mine.cores);
  const auto count = static_cast<std::int64_t>(words);
  world.all_gather(ConstBuffer(&mine, count, DType::i64),
                   Buffer(all.data(), count * world.size(), DType::i64));
  return all;
}

}  // namespace

Places places_of(Comm& world) {
  Places places;
  places.hosts = tune::hosts_of(world);
  const std::vector<Told> all = told_by_all(world);
  for (const Told& rank : all) {
    cpu_set_t together;
    CPU_ZERO(&together);
    for (const Told& other : all) {
      if (other.machine == rank.machine) CPU_OR(&together, &together, &other.cores);
    }
    places.cores.push_back(CPU_COUNT(&together));
    const auto first =
        std::find_if(all.begin(), all.end(), [&](const Told& o) { return o.machine == rank.machine; });
    places.machines.push_back(static_cast<int>(first - all.begin()));
  }
  return places;
}

route::Shape shape_of(const std::vector<int>& who, const std::vector<int>& hosts) {
  std::vector<int> of_each;
  for (const int rank : who) of_each.push_back(hosts[static_cast<std::size_t>(rank)]);
  return route::shape_of(of_each);
}

std::string_view backend_on(const route::Shape& shape, std::string_view backend) {
  const std::size_t plus = backend.find('+');
  if (plus == std::string_view::npos || (shape.hosts > 1 && shape.ranks_per_host > 1)) return backend;
  return shape.hosts == 1 ? backend.substr(0, plus) : backend.substr(plus + 1);
}

}  // namespace medley::replay

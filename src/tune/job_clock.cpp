#include "tune/job_clock.hpp"

#include <algorithm>
#include <functional>

#include "bootstrap/host.hpp"

namespace medley::tune {
namespace {

std::unique_ptr<SampleClock> shared_clock(Comm& world) {
  std::array<std::uint8_t, 64> text{};
  std::unique_ptr<SampleClock> clock;
  if (world.rank() == 0) {
    clock.reset(new SampleClock(SampleClock::create(world.size())));
    std::copy(clock->name().begin(), clock->name().end(), text.begin());
  }
  world.broadcast(text, 0);
  if (!clock) {
    const auto* name = reinterpret_cast<const char*>(text.data());
    clock.reset(new SampleClock(SampleClock::open(name, world.rank(), world.size())));
  }
  return clock;
}

}  // namespace

std::vector<int> hosts_of(Comm& comm) {
  const std::vector<std::int64_t> mine{static_cast<std::int64_t>(std::hash<std::string>{}(host_identity()))};
  std::vector<std::int64_t> all(static_cast<std::size_t>(comm.size())), seen;
  comm.all_gather(mine, all);
  std::vector<int> hosts;
  for (const std::int64_t host : all) {
    const auto at = std::find(seen.begin(), seen.end(), host);
    hosts.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(host);
  }
  return hosts;
}

route::Shape shape_of(const std::vector<int>& hosts) {
  route::Shape shape{*std::max_element(hosts.begin(), hosts.end()) + 1, 1};
  for (int host = 0; host < shape.hosts; ++host) {
    shape.ranks_per_host = std::max(shape.ranks_per_host, static_cast<int>(std::count(hosts.begin(), hosts.end(), host)));
  }
  return shape;
}

JobClock::JobClock(Context& context) : world_(context.world()), hosts_(hosts_of(world_)) {
  if (shape_of(hosts_).hosts == 1) {
    host_ = shared_clock(world_);
    // A library that moves only inside its calls must serve the ranks that are still in the operation.
    host_->while_waiting([&context] { context.progress(); });
    host_->meet();
  }
  start_ns_ = time([] {}).released_ns;
}

Sample JobClock::agreed(std::int64_t took_ns) {
  // The latest rank's clock stands for all: whole nanoseconds are exact in a double for three months.
  std::array<double, 2> slowest{static_cast<double>(took_ns), static_cast<double>(now_ns() - made_ns_)};
  world_.all_reduce(slowest, max);
  return {slowest[0] / 1e3, 0, static_cast<std::int64_t>(slowest[1])};
}

}  // namespace medley::tune

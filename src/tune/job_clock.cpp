#include "tune/job_clock.hpp"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "bootstrap/host.hpp"
#include "route/pair_name.hpp"
#include "tune/placement.hpp"

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

/// All ranks' texts as numbers that are equal for equal texts. Collective.
std::vector<std::size_t> texts_of_all(const Comm& comm, const std::string& text) {
  return gather_from_all(comm, std::hash<std::string>{}(text));
}

/// Equal where CLOCK_MONOTONIC is one clock: on one kernel and in one time namespace, as in most containers of a
/// machine.
std::string clock_identity() {
  std::error_code missing;
  return kernel_identity() + std::filesystem::read_symlink("/proc/self/ns/time", missing).string();
}

}  // namespace

std::vector<int> hosts_of(Comm& comm) {
  std::vector<std::size_t> seen;
  std::vector<int> hosts;
  for (const std::size_t host : texts_of_all(comm, host_identity())) {
    const auto at = std::find(seen.begin(), seen.end(), host);
    hosts.push_back(static_cast<int>(at - seen.begin()));
    if (at == seen.end()) seen.push_back(host);
  }
  return hosts;
}

JobClock::JobClock(Context& context)
    : world_(context.world()), hosts_(hosts_of(world_)), progress_([&context] { context.progress(); }) {
  if (route::shape_of(hosts_).hosts == 1) {
    host_ = shared_clock(world_);
    // A library that progresses only inside its calls must serve the ranks that are still in the operation.
    host_->while_waiting(progress_);
    host_->meet();
  } else {
    choose_carrier(context);
    const std::vector<std::size_t> clocks = texts_of_all(world_, clock_identity());
    compared_ = std::count(clocks.begin(), clocks.end(), clocks.front()) < world_.size();
    if (compared_) compare_clocks();
  }
  start_ns_ = time([] {}).released_ns;
}

/// The fastest backend: the clock's own messages should disturb the samples little.
void JobClock::choose_carrier(const Context& context) {
  double least = INFINITY;
  for (const BackendInfo& backend : context.backends()) {
    if (!backend.available || route::is_made_of_two(backend.name)) continue;
    std::array<double, 1> took{INFINITY};
    try {
      for (int i = 0; i < 20; ++i) {
        const std::int64_t began = now_ns();
        world_.barrier({.backend = backend.name});
        took[0] = std::min(took[0], static_cast<double>(now_ns() - began));
      }
      world_.all_reduce(took, max, {.backend = backend.name});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid && error.kind() != ErrorKind::unavailable) throw;
      continue;  // it does not serve all ranks; all of them get this error
    }
    if (took[0] < least) least = took[0], carrier_ = backend.name;
  }
}

/// By the fastest of many round trips with each rank.
void JobClock::compare_clocks() {
  constexpr int round_trips = 40;
  std::array<std::int64_t, 1> word{};
  for (int rank = 1; rank < world_.size(); ++rank) {
    std::int64_t quickest = INT64_MAX;
    for (int i = 0; i < round_trips; ++i) {
      if (world_.rank() == 0) {
        world_.recv(word, rank, own());
        word[0] = now_ns();
        world_.send(word, rank, own());
      } else if (world_.rank() == rank) {
        const std::int64_t sent = now_ns();
        world_.send(word, 0, own());
        world_.recv(word, 0, own());
        const std::int64_t back = now_ns();
        if (back - sent < quickest) quickest = back - sent, offset_ns_ = word[0] - (sent + back) / 2;
      }
    }
  }
}

/// Returns on all ranks at the same time, or late on ranks where the agreement arrived too late: the next margin is
/// then larger.
void JobClock::await_start() {
  std::array<std::int64_t, 1> latest{common_ns()};
  world_.all_reduce(latest, max, own());
  next_ns_ = latest[0] + margin_ns_;
  while (common_ns() < next_ns_) {
    progress_();
    sched_yield();
  }
}

Sample JobClock::agreed(std::int64_t began, std::int64_t ended) {
  std::array<std::int64_t, 2> last{began, ended};
  world_.all_reduce(last, max, own());
  const std::int64_t late = last[0] - next_ns_;
  // Where cores are oversubscribed some ranks are always late; a start far ahead would only cost samples.
  constexpr std::int64_t on_time = 20'000, most = 1'000'000;
  margin_ns_ = late > on_time ? std::min(margin_ns_ * 2, most) : std::max<std::int64_t>(margin_ns_ * 15 / 16, 100'000);
  return {static_cast<double>(std::max<std::int64_t>(last[1] - last[0], 0)) / 1e3, static_cast<double>(late) / 1e3,
          last[1]};
}

}  // namespace medley::tune

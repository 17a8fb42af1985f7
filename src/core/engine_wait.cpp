// Waiting: polls as long as an answer may come at once, then yields the core, then sleeps until a peer rings or
// something must be looked after: the deadline, a peer that died, an abort.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "core/engine.hpp"
#include "core/pause.hpp"

namespace medley::core {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

// A peer that ended in order has published all it owes; what it published may still need some polls to be taken in.
constexpr auto death_grace = 50ms;
constexpr auto longest_sleep = 20ms;      // how soon a death or an abort is noticed
constexpr timespec nap_without_waiter{0, 50'000};

Error timeout_error(const Operation& operation) {
  const std::vector<int> awaited = operation.transfer ? operation.transfer->awaited() : std::vector<int>{};
  std::string sentence = "the deadline passed";
  if (!awaited.empty()) {
    sentence += fmt::format(" while waiting for rank{} {}", awaited.size() == 1 ? "" : "s", fmt::join(awaited, ", "));
  }
  if (!operation.transfer && operation.lane) {
    sentence += " before it could start, since earlier operations are not complete";
  }
  return Error(ErrorKind::timeout, sentence, {.ranks = awaited});
}

/// Yields the core and says how much patience that took.
int yield(const Waiter* waiter) {
  if (!waiter || waiter->crowded()) {
    sched_yield();
    return 1;
  }
  const Deadline before = steady_clock::now();
  sched_yield();
  // A yield that comes back late was taken up: two ranks share this core while another is free. Sleeping at once is
  // the cure, since a sleeper is woken on a free core.
  return steady_clock::now() - before > 5us ? waiter->yields() : 1;
}

}  // namespace

/// How long one wait has lasted, in steps.
struct Patience {
  int spins = 0;
  int yields = 0;
  std::chrono::milliseconds nap = 1ms;
  Deadline last_check{};
  Deadline lost_since{};     ///< since when a peer is known to be gone
};

Poll Engine::advance(Operation& operation, Waiter*& waiter) {
  const std::lock_guard lock(mutex_);
  const bool moved = progress_locked();
  waiter = common_waiter();
  if (operation.complete()) return Poll::complete;
  return moved ? Poll::moved : Poll::waiting;
}

bool Engine::expire(Operation& operation, Deadline deadline, Patience& patience) {
  const Deadline now = steady_clock::now();
  Operation* blamed = &operation;
  for (Operation* member : pending_) {   // of a batch, the first that is not complete
    if (member->group == &operation) blamed = member;
    if (blamed != &operation) break;
  }
  const auto fail_with = [&](const Error& error) {
    fail_locked(*operation.comm, with_context(error, *operation.comm, blamed->call, blamed->sequence,
                                              blamed->lane ? blamed->lane->backend->name() : ""));
    return true;
  };
  if (now >= deadline) return fail_with(timeout_error(*blamed));
  if (now - patience.last_check < longest_sleep && patience.lost_since == Deadline{}) return false;
  patience.last_check = now;
  try {
    for (auto& lane : operation.comm->lanes) lane->lane->check();
    patience.lost_since = {};
  } catch (const Error& error) {
    if (patience.lost_since == Deadline{}) patience.lost_since = now;
    if (now - patience.lost_since >= death_grace) return fail_with(error);
  }
  return false;
}

bool Engine::sleep(Operation& operation, Deadline deadline, Waiter* waiter, Patience& patience) {
  // Announce the sleep, look once more, then sleep: what arrives in between rings the bell.
  const std::uint32_t ticket = waiter ? waiter->prepare() : 0;
  {
    const std::lock_guard lock(mutex_);
    const bool moved = progress_locked();
    const bool done = operation.complete() || expire(operation, deadline, patience);
    if (done || moved || waiter != common_waiter()) {
      if (waiter) waiter->cancel();
      return done;
    }
    if (waiter) sleepers_.push_back(waiter);
  }
  if (!waiter) {
    nanosleep(&nap_without_waiter, nullptr);
    return false;
  }
  const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(deadline - steady_clock::now(), 1us);
  const std::chrono::milliseconds nap = patience.lost_since == Deadline{} ? patience.nap : 1ms;
  waiter->sleep(ticket, std::min<std::chrono::nanoseconds>(nap, left));
  patience.nap = std::min<std::chrono::milliseconds>(patience.nap * 2, longest_sleep);
  const std::lock_guard lock(mutex_);
  sleepers_.erase(std::find(sleepers_.begin(), sleepers_.end(), waiter));
  return false;
}

void Engine::wait(Operation& operation, Deadline deadline) {
  refuse_forked_child();
  Patience patience;
  Waiter* waiter = nullptr;
  while (!operation.complete()) {
    const Poll seen = advance(operation, waiter);
    if (seen == Poll::complete) break;
    if (seen == Poll::moved) {
      patience.spins = patience.yields = 0;
    } else if (patience.spins++ < (waiter ? waiter->spins() : 200)) {
      pause();
    } else if (patience.yields < (waiter ? waiter->yields() : 20)) {
      patience.yields += yield(waiter);
    } else if (sleep(operation, deadline, waiter, patience)) {
      break;
    }
  }
  const std::lock_guard lock(mutex_);
  if (operation.error) throw *operation.error;
}

}  // namespace medley::core

#include "engine/backoff.hpp"

#include <sched.h>

#include <medley/sdk/pause.hpp>

namespace medley::core {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds taken_by_computation = 500us;
constexpr std::chrono::nanoseconds taken_by_another_rank = 5us;

}  // namespace

/// Yields the core and returns how many of the policy's yields that used up.
int Backoff::yield(const Waiting& waiting) {
  const BackoffPolicy& policy = waiting.policy;
  if (!waiting.event_count && !policy.oversubscribed) {
    sched_yield();
    return 1;
  }
  const Deadline before = steady_clock::now();
  sched_yield();
  // A late return from a yield has two causes. Two ranks share this core while another is free: a sleeper wakes on the
  // free core. Or, oversubscribed, the core went to a rank that computes (ranks that only answer return within
  // microseconds). Each yield to that rank gives away a time slice, while a woken sleeper is scheduled before it.
  const bool late =
      steady_clock::now() - before > (policy.oversubscribed ? taken_by_computation : taken_by_another_rank);
  return late ? policy.yields : 1;
}

bool Backoff::step(const Waiting& waiting) {
  if (spins_++ < waiting.policy.spins) {
    pause();
  } else if (yields_ < waiting.policy.yields) {
    yields_ += yield(waiting);
  } else {
    return true;
  }
  return false;
}

std::chrono::nanoseconds Backoff::next_sleep(const Waiting& waiting) {
  const std::chrono::nanoseconds own = sleep_;
  sleep_ = std::min(2 * sleep_, longest_sleep);
  if (waiting.undelivered || !waiting.event_count) return short_nap;
  return somebody_lost_ ? std::chrono::nanoseconds(1ms) : own;
}

bool Backoff::check_due(Deadline now, Deadline& last) const {
  if (now - last < longest_sleep && !somebody_lost_) return false;
  last = now;
  return true;
}

}  // namespace medley::core

// The end of comms: of those that a context still has when it is destroyed, and of those whose last reference is gone.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "engine/engine.hpp"

namespace medley::core {
namespace {

constexpr std::chrono::seconds longest_close{1};  // to deliver exchanged sizes, when a context is destroyed

}  // namespace

void Engine::close(CommState& comm) {
  finish_in_streams(comm);
  {
    const Hold hold(*this);
    if (comm.lanes.empty()) return;
    const bool pending = std::any_of(pending_.begin(), pending_.end(),
                                     [&](const Operation& operation) { return operation.comm.get() == &comm; });
    if (pending)
      fail_locked(comm, Error(ErrorKind::aborted, "its context was destroyed before the operation was complete"));
    comm.failure = Error(ErrorKind::invalid, "its context no longer exists", {});
  }
  const Deadline limit = std::chrono::steady_clock::now() + longest_close;
  progress_until([&] { return may_destroy_lanes(comm, std::chrono::steady_clock::now() >= limit); });
  const Hold hold(*this);
  destroy_lanes(comm);
}

void Engine::reclaim(CommState* comm) noexcept {
  std::unique_ptr<CommState> gone(comm);
  if (!fork_guard_.here()) return static_cast<void>(gone.release());  // the libraries belong to the parent
  const bool locked_here = mutex_.held_here();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (!locked_here) lock.lock();
  closing_.push_back(std::move(gone));
  ending_ = true;
  if (locked_here) return;
  reclaim_closed();
  ending_ = !aborting_.empty() || !closing_.empty();
  if (!closing_.empty() && thread_) thread_->nudge();
}

void Engine::reclaim_all() noexcept {
  const Deadline limit = std::chrono::steady_clock::now() + longest_close;
  progress_until([&] {
    reclaim_closed(std::chrono::steady_clock::now() >= limit);
    return closing_.empty();
  });
}

void Engine::reclaim_closed(bool hurry) noexcept {
  const auto ready = [&](const std::unique_ptr<CommState>& comm) { return may_destroy_lanes(*comm, hurry); };
  for (auto at = closing_.begin(); (at = std::find_if(closing_.begin(), closing_.end(), ready)) != closing_.end();) {
    const std::unique_ptr<CommState> gone = std::move(*at);
    closing_.erase(at);
    destroy_lanes(*gone);
  }
}

/// Whether its lanes have delivered everything to their peers, so that destroying them does not wait. Each lane bounds
/// the time of its abort and its close. Sizes that peers have not received are dropped only when `hurry` is set.
bool Engine::may_destroy_lanes(CommState& comm, bool hurry) noexcept {
  bool ready = !comm.aborting;
  for (auto& lane : comm.lanes)
    ready = (hurry || lane->value_exchange.empty()) && (!lane->lane || lane->lane->poll_close()) && ready;
  return ready;
}

void Engine::destroy_lanes(CommState& comm) noexcept {
  std::erase(aborting_, &comm);
  open_routes_.erase(&comm);
  progress_.remove_lanes(comm);
  comm.last_named = nullptr;
  comm.lanes.clear();
  order_checked_.erase(comm.name);
}

}  // namespace medley::core

// The progress thread: what it does beside callers that wait, beside streams, and alone; its start and its end.
#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/engine.hpp"

namespace medley::core {
namespace {

constexpr timespec nap_beside_callers{0, 200'000};
// The progress thread leaves callers that wait for a millisecond alone: on oversubscribed cores each wake-up takes time
// from a rank that computes.
constexpr int naps_beside_callers = 5;
constexpr timespec nap_beside_streams{0, 5'000'000};

}  // namespace

void Engine::expire_in_streams(Backoff& backoff) {
  OperationRef late;
  {
    const Hold hold(*this);
    late = expire_all(backoff);
  }
  if (late) fail_late(*late);
}

/// Whether callers are waiting; the last of them wakes the progress thread.
bool Engine::leave_to_callers(ProgressThread& thread) {
  const std::lock_guard lock(mutex_);
  if (callers_.load(std::memory_order_relaxed) == 0) return false;
  thread.going_idle();
  return true;
}

void Engine::run_progress_thread(ProgressThread& thread) {
  Backoff backoff;
  int naps = 0;
  while (!thread.stopping()) {
    // Callers make progress for everything; a second poller would only contend
    if (callers_.load(std::memory_order_relaxed) > 0) {
      if (naps++ >= naps_beside_callers && leave_to_callers(thread)) return;
      nanosleep(&nap_beside_callers, nullptr);
      continue;
    }
    naps = 0;
    handle_events();
    Waiting waiting;
    bool moved = false, in_streams = false;
    {
      const Hold hold(*this);
      moved = progress_locked();
      in_streams = !pending_.empty() && !scheduler_.streams().any_needs_host();
      waiting = progress_.how_to_wait();
      waiting.undelivered = waiting.undelivered || routes_need_polls();
      if (idle_locked()) return thread.going_idle();
    }
    if (in_streams) {  // the device makes the progress; only deadlines and lost ranks need checks
      nanosleep(&nap_beside_streams, nullptr);
      expire_in_streams(backoff);
    } else if (moved) {
      backoff.reset();
    } else if (backoff.step(waiting)) {
      sleep(nullptr, std::chrono::steady_clock::now() + Backoff::longest_sleep, waiting, backoff);
    }
  }
}

Engine::~Engine() {
  if (!fork_guard_.here()) static_cast<void>(thread_.release());  // the thread stayed in the parent
}

void Engine::start_thread() {
  const std::lock_guard lock(thread_mutex_);
  if (thread_) return;
  auto made = std::make_unique<ProgressThread>(*this);
  const std::lock_guard engine_lock(mutex_);
  thread_ = std::move(made);
}

void Engine::stop_thread() {
  const std::lock_guard lock(thread_mutex_);
  std::unique_ptr<ProgressThread> ended;
  {
    const std::lock_guard engine_lock(mutex_);
    ended = std::move(thread_);
  }
}

}  // namespace medley::core

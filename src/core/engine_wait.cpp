// Waiting: polls as long as an answer may come at once, then yields the core, then sleeps until a peer rings or
// something must be looked after: the deadline, a peer that died, an abort.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "core/as_error.hpp"
#include "core/engine.hpp"
#include "core/pause.hpp"

namespace medley::core {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

// A peer that ended in order has published all it owes; what it published may still need some polls to be taken in.
constexpr auto death_grace = 50ms;
constexpr auto longest_sleep = 20ms;      // how soon a death or an abort is noticed
constexpr auto patience_with_telling = 1s;
constexpr timespec nap_without_waiter{0, 50'000};
constexpr timespec nap_beside_callers{0, 200'000};
// Callers that wait for a millisecond are left alone: on crowded cores each nap's end takes one from a rank that computes.
constexpr int naps_beside_callers = 5;
constexpr std::chrono::nanoseconds taken_by_computation = 500us;
constexpr timespec nap_beside_streams{0, 5'000'000};

/// A collective may be waiting for a rank that itself waits for the one that is missing: what the ranks said about
/// themselves comes first. The peer of a message is who it is.
std::vector<int> blamed_ranks(const Operation& operation, const Diagnosis& found) {
  if (operation.collective() && !found.at_fault.empty()) return found.at_fault;
  return operation.awaited();
}

Error timeout_error(const Operation& operation, const Diagnosis& found) {
  const std::vector<int> awaited = blamed_ranks(operation, found);
  std::string sentence = "the deadline passed";
  if (!awaited.empty()) {
    sentence += fmt::format(" while waiting for rank{} {}", awaited.size() == 1 ? "" : "s", fmt::join(awaited, ", "));
  }
  if (operation.size && !awaited.empty()) {
    sentence += fmt::format(" to tell the size of earlier {} calls, which decides its route", name(operation.call.op));
  } else if (operation.compared) {
    sentence += " before all ranks had called it";
  } else if (!operation.transfer && operation.lane) {
    sentence += " before it could start, since earlier operations are not complete";
  }
  return Error(ErrorKind::timeout, sentence + found.text, {.ranks = awaited});
}

}  // namespace

/// How long one wait has lasted, in steps.
struct Patience {
  int spins = 0;
  int yields = 0;
  std::chrono::milliseconds nap = 1ms;
  Deadline last_check{};
  bool somebody_lost = false;   ///< and given the grace to have its last bytes taken in

  /// Whether it is time to look for what does not ring: deadlines and deaths.
  bool due(Deadline now) {
    if (now - last_check < longest_sleep && !somebody_lost) return false;
    last_check = now;
    return true;
  }
};

/// Yields the core and says how much patience that took.
int Engine::yield(const Waiting& waiting) {
  const Manner& manner = waiting.manner;
  if (!waiting.waiter && !manner.crowded) {
    sched_yield();
    return 1;
  }
  const Deadline before = steady_clock::now();
  sched_yield();
  // A yield that comes back late was taken up by two ranks that share this core while another is free: a sleeper is woken on
  // the free one. Among crowded ranks it was taken up by one that computes: those that only answer are back in microseconds.
  // Whoever yields to it gives away a slice each time, and a sleeper comes before it when woken.
  return steady_clock::now() - before > (manner.crowded ? taken_by_computation : 5us) ? manner.yields : 1;
}

/// One step of waiting; true when it is time to sleep.
bool Engine::wait_a_little(const Waiting& waiting, Patience& patience) {
  if (patience.spins++ < waiting.manner.spins) {
    pause();
  } else if (patience.yields < waiting.manner.yields) {
    patience.yields += yield(waiting);
  } else {
    return true;
  }
  return false;
}

Poll Engine::advance(const Operation& operation, bool first, Waiting& waiting) {
  attend();
  const Hold hold(*this);
  if (first) note_wait(operation);
  const bool moved = progress_locked();
  if (operation.complete()) return Poll::complete;
  if (moved) return Poll::moved;
  waiting = how_to_wait();
  return Poll::waiting;
}

/// Throws once a member of the comm has been gone for longer than the grace.
void Engine::look_for_lost(CommState& comm, Deadline now) {
  try {
    for (auto& lane : comm.lanes) lane->lane->check();
    comm.lost_since = {};
  } catch (...) {
    if (comm.lost_since == Deadline{}) comm.lost_since = now;
    if (now - comm.lost_since >= death_grace) throw current_error();
  }
}

/// Of a batch, the first that is not complete.
Operation& Engine::blamed_for(Operation& operation) const {
  for (Operation* member : pending_) {
    if (member->group == &operation) return *member;
  }
  return operation;
}

Engine::Verdict Engine::expire(Operation& operation, Deadline deadline, Patience& patience) {
  const Deadline now = steady_clock::now();
  CommState& comm = *operation.comm;
  if (now >= deadline) return Verdict::late;
  if (!patience.due(now)) return Verdict::go_on;
  show_awaited();
  try {
    look_for_lost(comm, now);
    patience.somebody_lost = comm.lost_since != Deadline{};
    return Verdict::go_on;
  } catch (const Error& error) {
    const Operation& blamed = blamed_for(operation);
    fail_locked(comm, with_context(error, blamed));
    return Verdict::failed;
  }
}

/// The deadline has passed: the other ranks are asked where they are, without the lock, and all are told.
void Engine::fail_late(Operation& operation) {
  CommState& comm = *operation.comm;
  Diagnosis found;
  try {
    if (outside_.who_is_where) found = outside_.who_is_where(comm, operation);
  } catch (const std::exception& error) {   // the timeout is told without it
    found.text = fmt::format("; where the ranks are could not be found out: {}", error.what());
  }
  attend();   // a rank that was late a moment earlier saw more: its word, which comes before its answer, counts
  const Hold hold(*this);
  if (operation.complete()) return;
  const Operation& blamed = blamed_for(operation);
  fail_locked(comm, with_context(timeout_error(blamed, found), blamed));
}

/// The first that is late, if any; those of lost ranks fail here.
Operation* Engine::expire_all(Patience& patience) {
  const Deadline now = steady_clock::now();
  if (!patience.due(now)) return nullptr;
  patience.somebody_lost = false;
  std::vector<const CommState*> looked;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    Operation& operation = *pending_[i];
    if (operation.complete()) continue;
    const bool again = std::find(looked.begin(), looked.end(), operation.comm.get()) != looked.end();
    if (again && now < operation.deadline) continue;   // the lost are looked for once in a comm
    if (!again) looked.push_back(operation.comm.get());
    Patience now_due;
    if (expire(operation, operation.deadline, now_due) == Verdict::late) {
      operation.retain();
      return &operation;
    }
    patience.somebody_lost = patience.somebody_lost || now_due.somebody_lost;
  }
  return nullptr;
}

/// What expire_all() found, if anything; without the lock.
void Engine::fail_late_of_all(Operation* late) {
  if (!late) return;
  fail_late(*late);
  late->release();
}

/// For those who never wait but test: the lost and the late fail here too.
void Engine::progress() {
  refuse_forked_child();
  attend();
  Operation* late = nullptr;
  {
    const Hold hold(*this);
    progress_locked();
    if (pending_.empty()) return;
    Patience patience{.last_check = last_look_};
    late = expire_all(patience);
    last_look_ = patience.last_check;
  }
  fail_late_of_all(late);
}

/// True when the operation, or with none given everything, is complete.
bool Engine::sleep(Operation* operation, Deadline deadline, const Waiting& waiting, Patience& patience) {
  Waiter* const waiter = waiting.waiter;
  // Announce the sleep, look once more, then sleep: what arrives in between rings the bell.
  const std::uint32_t ticket = waiter ? waiter->prepare() : 0;
  Operation* late = nullptr;
  {
    const Hold hold(*this);
    const bool moved = progress_locked();
    bool done = operation ? operation->complete() : quiet();
    if (!done && operation) {
      const Verdict verdict = expire(*operation, deadline, patience);
      done = verdict == Verdict::failed;
      if (verdict == Verdict::late) operation->retain(), late = operation;
    } else if (!done) {
      late = expire_all(patience);
    }
    if (done || late || moved || waiter != how_to_wait().waiter) {
      if (waiter) waiter->cancel();
      if (!late) return done;
    } else if (waiter) {
      sleepers_.push_back(waiter);
    }
  }
  if (late) {
    fail_late_of_all(late);
    return operation != nullptr;
  }
  if (!waiter) {
    nanosleep(&nap_without_waiter, nullptr);
    return false;
  }
  const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(deadline - steady_clock::now(), 1us);
  const std::chrono::nanoseconds nap = waiting.owing            ? std::chrono::nanoseconds(nap_without_waiter.tv_nsec)
                                       : patience.somebody_lost ? 1ms
                                                                : patience.nap;
  waiter->sleep(ticket, std::min(nap, left));
  patience.nap = std::min<std::chrono::milliseconds>(patience.nap * 2, longest_sleep);
  const std::lock_guard lock(mutex_);
  sleepers_.erase(std::find(sleepers_.begin(), sleepers_.end(), waiter));
  return false;
}

/// Counts a thread inside a wait.
class Engine::Caller {
 public:
  explicit Caller(Engine& engine) : engine_(engine) { engine_.callers_.fetch_add(1, std::memory_order_relaxed); }
  ~Caller() {
    const std::lock_guard lock(engine_.mutex_);
    // The last to leave hands over what it moved beside its own operation.
    if (engine_.callers_.fetch_sub(1, std::memory_order_relaxed) == 1 && engine_.thread_ && !engine_.quiet()) engine_.thread_->nudge();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  Engine& engine_;
};

/// Drives everything until the operation is complete, the stream waits for it where one is given, or `until` has passed,
/// and says whether the first or the second came; past `deadline` it fails.
bool Engine::poll_until_complete(Operation& operation, Deadline deadline, Deadline until, WaitIn stream) {
  refuse_forked_child();
  const bool in_stream = stream && operation.call.memory == Memory::cuda;
  bool ordered = false;
  Patience patience;
  Waiting waiting;
  const Caller caller(*this);
  for (bool first = true; !operation.complete(); first = false) {
    if (in_stream && (ordered = order_stream_behind(operation, *stream))) break;
    const Poll seen = advance(operation, first, waiting);
    if (seen == Poll::complete) break;
    if (seen == Poll::moved) {
      patience.spins = patience.yields = 0;
    } else if (wait_a_little(waiting, patience) && sleep(&operation, deadline, waiting, patience)) {
      break;
    } else if (until < deadline && steady_clock::now() >= until) {
      // On a busy machine a short wait may never come to sleep, where the lost and the late are looked for.
      Verdict verdict = Verdict::go_on;
      {
        const Hold hold(*this);
        if (!operation.complete()) verdict = expire(operation, deadline, patience);
      }
      if (verdict == Verdict::late) fail_late(operation);
      break;
    }
  }
  if (ordered || !operation.complete()) return ordered;
  if (operation.error) throw *operation.error;
  return true;
}

void Engine::finish_telling() {
  const Deadline until = steady_clock::now() + patience_with_telling;
  for (bool left = true; left && steady_clock::now() < until; sched_yield()) {
    const Hold hold(*this);
    progress_locked();
    left = std::any_of(busy_lanes_.begin(), busy_lanes_.end(), [](const LaneState* lane) { return !lane->tellings.empty(); });
  }
}

void Engine::wait(Operation& operation, Deadline deadline) {
  poll_until_complete(operation, deadline, Deadline::max(), std::nullopt);
}

void Engine::wait_in_stream(Operation& operation, Deadline deadline) {
  poll_until_complete(operation, deadline, Deadline::max(), operation.call.stream);
}

bool Engine::wait_in_stream_until(Operation& operation, void* stream, Deadline until) {
  return poll_until_complete(operation, operation.deadline, until, stream);
}

bool Engine::wait_until(Operation& operation, Deadline until) {
  return poll_until_complete(operation, operation.deadline, until, std::nullopt);
}

void Engine::expire_in_streams(Patience& patience) {
  Operation* late = nullptr;
  {
    const Hold hold(*this);
    late = expire_all(patience);
  }
  fail_late_of_all(late);
}

/// Whether there are callers; the last of them will call the thread back.
bool Engine::leave_to_callers(ProgressThread& thread) {
  const std::lock_guard lock(mutex_);
  if (callers_.load(std::memory_order_relaxed) == 0) return false;
  thread.going_idle();
  return true;
}

void Engine::tend(ProgressThread& thread) {
  Patience patience;
  int naps = 0;
  while (!thread.stopping()) {
    if (callers_.load(std::memory_order_relaxed) > 0) {   // they move everything; two would only contend
      if (naps++ >= naps_beside_callers && leave_to_callers(thread)) return;
      nanosleep(&nap_beside_callers, nullptr);
      continue;
    }
    naps = 0;
    attend();
    Waiting waiting;
    bool moved = false, in_streams = false;
    {
      const Hold hold(*this);
      moved = progress_locked();
      in_streams = all_in_streams();
      waiting = how_to_wait();
      if (quiet()) return thread.going_idle();
    }
    if (in_streams) {   // the device moves them; what is left is deadlines and deaths
      nanosleep(&nap_beside_streams, nullptr);
      expire_in_streams(patience);
    } else if (moved) {
      patience.spins = patience.yields = 0;
    } else if (wait_a_little(waiting, patience)) {
      sleep(nullptr, steady_clock::now() + longest_sleep, waiting, patience);
    }
  }
}

Engine::~Engine() {
  if (!fork_guard_.here()) static_cast<void>(thread_.release());   // the thread stayed in the parent
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

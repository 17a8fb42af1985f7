// Waiting: polls while an answer may come at once, then yields the core, then sleeps until a peer rings the doorbell or
// a check is due: the deadline, a dead peer, an abort.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <medley/sdk/current_error.hpp>
#include <medley/sdk/pause.hpp>
#include <thread>
#include <unordered_set>

#include "base/ranks_text.hpp"
#include "engine/engine.hpp"
#include "engine/self_message.hpp"

namespace medley::core {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

// A peer that left in order has published everything; receiving it may still take some polls.
constexpr auto death_grace = 50ms;
constexpr auto longest_value_exchange = 1s;
// Polls before a wait counts as long, the first of them without a pause. Used only with so few active operations that a
// pass takes well under a microsecond, since the lock is held meanwhile.
constexpr int brief_polls = 64, unpaused_polls = 32;
constexpr std::size_t few_active = 32;

/// A collective may wait for a rank that itself waits for the missing one, so the ranks' own answers come first. A
/// message awaits its peer.
std::vector<int> blamed_ranks(const Operation& operation, const Diagnosis& found) {
  if (operation.collective() && !found.at_fault.empty()) return found.at_fault;
  return operation.awaited();
}

Error timeout_error(const Operation& operation, const Diagnosis& found) {
  const std::vector<int> awaited = blamed_ranks(operation, found);
  std::string sentence = "the deadline passed";
  if (!awaited.empty()) sentence += " while waiting for " + ranks_text(awaited);
  sentence += self_message_advice(operation);
  if (operation.open_route && !awaited.empty()) {
    sentence +=
        operation.online.takes_part()
            ? std::string(" to tell how long earlier collectives took, which decides its route")
            : fmt::format(" to tell the size of earlier {} calls, which decides its route", name(operation.call.op));
  } else if (operation.awaiting_check) {
    sentence += " before all ranks had called it";
  } else if (!operation.transfer && operation.lane) {
    sentence += " before it could start, since earlier operations are not complete";
  }
  return Error(ErrorKind::timeout, sentence + found.text, {.ranks = awaited});
}

}  // namespace

/// Whether a comm's queue for lane order moves by time or by values that ring no doorbell. While collected operations
/// are being agreed on, it moves with the agreement, an operation like any other.
bool Engine::routes_need_polls() const {
  return std::any_of(open_routes_.begin(), open_routes_.end(), [](const CommState* comm) {
    const auto& waiting = comm->awaiting_lane_order;
    return waiting.empty() || !waiting.front()->collected || !comm->auto_fuse->agreement;
  });
}

Poll Engine::advance(Operation& operation, bool first, Waiting& waiting) {
  handle_events();
  const Hold hold(*this);
  if (first) note_wait(operation);
  bool moved = progress_locked();
  if (progress_.active() > Progress::polled_in_a_pass) moved = progress_.poll(operation) || moved;
  if (operation.complete()) return Poll::complete;
  if (moved) return Poll::moved;
  waiting = progress_.how_to_wait();
  waiting.undelivered = waiting.undelivered || !aborting_.empty() || routes_need_polls();
  return Poll::waiting;
}

/// Polls with the lock taken once, while an answer may come at once. Most waits for small messages end here.
void Engine::poll_briefly(Operation& operation) {
  handle_events();
  const Hold hold(*this);
  if (operation.complete()) return;
  note_wait(operation);
  const bool alone = callers_.load(std::memory_order_relaxed) == 0 && progress_.active() <= few_active;
  const int polls = alone && progress_.how_to_wait().policy.spins > 0 ? brief_polls : 1;
  for (int i = 0; i < polls; ++i) {
    progress_locked();
    if (operation.complete()) return;
    if (i >= unpaused_polls) pause();
  }
}

/// Throws once a member of the comm has been lost for longer than the grace period.
void Engine::look_for_lost(CommState& comm, Deadline now) {
  try {
    for (auto& lane : comm.lanes) lane->lane->check();
    comm.lost_since = {};
  } catch (...) {
    if (comm.lost_since == Deadline{}) comm.lost_since = now;
    if (now - comm.lost_since >= death_grace) throw current_error();
  }
}

/// For a batch: the first member that is not complete.
Operation& Engine::blamed_for(Operation& operation) {
  for (Operation* member : operation.batch) {
    if (!member->complete()) return *member;
  }
  if (operation.collected && operation.comm->auto_fuse->agreement) return *operation.comm->auto_fuse->agreement;
  return operation;
}

Engine::Verdict Engine::expire(Operation& operation, Deadline deadline, Backoff& backoff) {
  const Deadline now = steady_clock::now();
  CommState& comm = *operation.comm;
  if (comm.failure) return Verdict::go_on;  // it completes with the abort
  if (now >= deadline) return Verdict::late;
  backoff.expect_loss(comm.lost_since != Deadline{});
  // Once for all waits: each lane's check is system calls or messages, and a program may have thousands of short waits
  // a second.
  if (!backoff.check_due(now, comm.last_check)) return Verdict::go_on;
  show_awaited();
  if (const Record* record = operation.record && !self_send_hinted_ ? recorder_->find(operation.record) : nullptr)
    self_send_hinted_ = hint_at_self_send(operation, *record);
  try {
    look_for_lost(comm, now);
    backoff.expect_loss(comm.lost_since != Deadline{});
  } catch (const Error& error) {
    fail_locked(comm, with_context(error, blamed_for(operation)));
  }
  return Verdict::go_on;
}

/// The deadline has passed: asks the other ranks where they are, without the lock, and announces the failure to all.
void Engine::fail_late(Operation& operation) {
  CommState& comm = *operation.comm;
  Diagnosis found;
  try {
    if (hooks_.diagnose_stall) found = hooks_.diagnose_stall(comm, operation);
  } catch (const std::exception& error) {  // the timeout is reported without it
    found.text = fmt::format("; where the ranks are could not be found out: {}", error.what());
  }
  // A rank that timed out a moment earlier saw more: its event arrives before its answer and takes precedence
  handle_events();
  const Hold hold(*this);
  if (operation.complete()) return;
  const Operation& blamed = blamed_for(operation);
  fail_locked(comm, with_context(timeout_error(blamed, found), blamed));
}

/// The first operation past its deadline, if any, with a reference. Operations that await lost ranks fail here.
OperationRef Engine::expire_all(Backoff& backoff) {
  const Deadline now = steady_clock::now();
  if (!backoff.check_due(now, last_check_)) return nullptr;
  std::vector<OperationRef> of_each_comm;  // lost ranks are checked once per comm
  std::unordered_set<const CommState*> seen;
  for (Operation& operation : pending_) {
    if (operation.comm->failure) continue;
    if (now >= operation.deadline) {
      operation.retain();
      return OperationRef(&operation);
    }
    if (!seen.insert(operation.comm.get()).second) continue;
    operation.retain();
    of_each_comm.emplace_back(&operation);
  }
  bool somebody_lost = false;
  for (const OperationRef& operation : of_each_comm) {
    Backoff own;
    if (!operation->complete()) expire(*operation, Deadline::max(), own);
    somebody_lost = somebody_lost || own.loss_expected();
  }
  backoff.expect_loss(somebody_lost);
  return nullptr;
}

/// For callers that test and never wait: operations with lost ranks or past deadlines fail here too.
void Engine::progress() {
  refuse_forked_child();
  handle_events();
  OperationRef late;
  {
    const Hold hold(*this);
    progress_locked();
    if (pending_.empty()) return;
    Backoff backoff;
    late = expire_all(backoff);
  }
  if (late) fail_late(*late);
}

/// Sleeps until something may have changed; true when the operation (or everything, if none is given) is complete.
bool Engine::sleep(Operation* operation, Deadline deadline, const Waiting& waiting, Backoff& backoff) {
  EventCount* const event_count = waiting.event_count;
  // Announce the sleep, poll everything once more, then sleep: whatever arrives in between rings the doorbell.
  const std::uint32_t ticket = event_count ? event_count->prepare() : 0;
  OperationRef late;
  {
    const Hold hold(*this);
    const bool moved = progress_locked(Progress::Extent::all);
    bool done = operation ? operation->complete() : idle_locked();
    if (!done && operation) {
      if (expire(*operation, deadline, backoff) == Verdict::late) operation->retain(), late.reset(operation);
      done = operation->complete();
    } else if (!done) {
      late = expire_all(backoff);
    }
    if (done || late || moved || event_count != progress_.how_to_wait().event_count) {
      if (event_count) event_count->cancel();
      if (!late) return done;
    } else if (event_count) {
      sleepers_.push_back(event_count);
    }
  }
  if (late) {
    fail_late(*late);
    return operation && operation->complete();
  }
  const std::chrono::nanoseconds left = std::max<std::chrono::nanoseconds>(deadline - steady_clock::now(), 1us);
  const std::chrono::nanoseconds at_most = std::min(backoff.next_sleep(waiting), left);
  if (!event_count) {
    std::this_thread::sleep_for(at_most);
    return false;
  }
  event_count->sleep(ticket, at_most);
  const std::lock_guard lock(mutex_);
  sleepers_.erase(std::find(sleepers_.begin(), sleepers_.end(), event_count));
  return false;
}

/// Counts a thread inside a wait.
class Engine::Caller {
 public:
  explicit Caller(Engine& engine) : engine_(engine) { engine_.callers_.fetch_add(1, std::memory_order_relaxed); }
  ~Caller() {
    const std::lock_guard lock(engine_.mutex_);
    // The last thread to leave wakes the progress thread for the operations that are still pending.
    if (engine_.callers_.fetch_sub(1, std::memory_order_relaxed) == 1 && engine_.thread_ && !engine_.idle_locked())
      engine_.thread_->nudge();
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

 private:
  Engine& engine_;
};

/// The first member of a list from number `looked` on that is not complete, with a reference.
OperationRef Engine::unfinished_member(const Operation& list, std::size_t& looked) {
  const std::lock_guard lock(mutex_);
  for (; looked < list.batch.size(); ++looked) {
    Operation* const member = list.batch[looked];
    if (member->complete()) continue;
    member->retain();
    return OperationRef(member);
  }
  return nullptr;
}

/// Makes progress until the operation is complete, the given stream waits for it, or `until` has passed. Returns
/// whether one of the first two happened; past `deadline` the operation fails.
bool Engine::poll_until_complete(Operation& operation, Deadline deadline, Deadline until, WaitIn stream) {
  refuse_forked_child();
  if (operation.of_tensor) [[unlikely]]
    refuse_unissued(operation);
  const bool on_device = operation.call.memory == Memory::cuda;
  // A list is awaited tensor by tensor, as a program would await single calls: each gets its brief polls.
  std::size_t looked = 0;
  for (OperationRef member; !on_device && !operation.lane && (member = unfinished_member(operation, looked));) {
    poll_briefly(*member);
    if (!member->complete()) poll_patiently(*member, std::min(deadline, member->deadline), until, std::nullopt);
    if (!member->complete()) break;  // `until` has passed
  }
  if (!on_device && !operation.complete()) poll_briefly(operation);
  const bool ordered =
      !operation.complete() && poll_patiently(operation, deadline, until, on_device ? stream : std::nullopt);
  if (ordered || !operation.complete()) return ordered;
  if (operation.error) throw *operation.error;
  return true;
}

/// Waits until the operation is complete or `until` has passed; true if the stream waits for it instead.
bool Engine::poll_patiently(Operation& operation, Deadline deadline, Deadline until, WaitIn stream) {
  Backoff backoff;
  Waiting waiting;
  const Caller caller(*this);
  for (bool first = true; !operation.complete(); first = false) {
    if (stream && order_stream_behind(operation, *stream)) return true;
    const Poll seen = advance(operation, first, waiting);
    if (seen == Poll::complete) break;
    if (seen == Poll::moved) {
      backoff.reset();
    } else if (backoff.step(waiting) && sleep(&operation, deadline, waiting, backoff)) {
      break;
    } else if (until < deadline && steady_clock::now() >= until) {
      // On a busy machine a short wait may never reach the sleep, which is where deadlines and lost ranks are checked.
      Verdict verdict = Verdict::go_on;
      bool failing = false;
      {
        const Hold hold(*this);
        if (!operation.complete()) verdict = expire(operation, deadline, backoff);
        failing = operation.comm->aborting;
      }
      if (verdict == Verdict::late) fail_late(operation);
      if (verdict != Verdict::late && !failing) break;  // failing operations end with the abort, which is bounded
    }
  }
  return false;
}

void Engine::finish_value_exchange() {
  const Deadline until = steady_clock::now() + longest_value_exchange;
  for (bool left = true; left && steady_clock::now() < until; sched_yield()) {
    const Hold hold(*this);
    progress_locked();
    left = progress_.has_value_exchange();
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

}  // namespace medley::core

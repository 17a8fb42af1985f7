#include <medley/sdk/blocking_adapter.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include <medley/sdk/current_error.hpp>
#include <medley/sdk/fork_guard.hpp>
#include <medley/sdk/quiet_thread.hpp>

namespace medley {
namespace {

constexpr auto grace = std::chrono::seconds(1);

/// Operations that run in order: all collectives; sends or receives with one peer and tag.
using Strand = std::tuple<Op, int, int>;

Strand strand_of(const Call& call) {
  const bool message = call.op == Op::send || call.op == Op::recv;
  return message ? Strand{call.op, call.root, call.tag} : Strand{Op::barrier, 0, 0};
}

/// One operation on its way to a worker and back. Owns what its call points to, except the user's buffers.
struct Errand {
  Errand(const Call& of, int ranks) : call(of), algorithm(of.algorithm) {
    call.algorithm = algorithm;
    const std::int64_t** lists[] = {&call.in_counts, &call.in_offsets, &call.out_counts, &call.out_offsets};
    const auto n = static_cast<std::size_t>(ranks);
    parts.resize(4 * n);
    for (std::size_t i = 0; i < 4; ++i) {
      if (!*lists[i]) continue;
      std::copy_n(*lists[i], n, parts.begin() + static_cast<std::ptrdiff_t>(i * n));
      *lists[i] = parts.data() + i * n;
    }
  }
  Call call;
  std::string algorithm;
  std::vector<std::int64_t> parts;
  std::shared_ptr<const void> memory;  ///< of an abandoned operation, kept until its worker returns
  std::exception_ptr thrown;           ///< these two are written before `done`
  int source = -1;
  std::atomic<bool> done{false};
};

class ErrandTransfer final : public Transfer {
 public:
  explicit ErrandTransfer(std::shared_ptr<Errand> errand) : errand_(std::move(errand)) {}
  Poll poll() override {
    // Pairs with the release store in run_one()
    if (!errand_->done.load(std::memory_order_acquire)) return Poll::waiting;
    if (errand_->thrown) throw as_error(errand_->thrown);
    return Poll::complete;
  }
  std::vector<int> awaited() const override {
    const Call& call = errand_->call;
    const bool message = call.op == Op::send || call.op == Op::recv;
    return message && call.root >= 0 ? std::vector<int>{call.root} : std::vector<int>{};
  }
  int source() const override { return errand_->source; }
  void abandon(std::shared_ptr<const void> memory) noexcept override {
    errand_->memory = std::move(memory);  // a worker still inside the library holds the errand
    release();
  }

 private:
  std::shared_ptr<Errand> errand_;
};

}  // namespace

/// Shared with the workers, so that one that never returns keeps what it uses alive.
struct BlockingLane::State {
  std::shared_ptr<BlockingLibrary> library;
  int ranks;
  std::chrono::nanoseconds timeout;
  std::function<void()> ring;
  ForkGuard fork_guard;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<Strand, std::deque<std::shared_ptr<Errand>>> strands;  ///< the first of each is ready or running
  std::deque<Strand> ready;
  std::size_t workers = 0, idle = 0, performing = 0;
  bool closing = false;
  bool stopped = false;
  Deadline limit{};  ///< for waiting on workers, set when it is stopped

  static void work(const std::shared_ptr<State>& state);
  void run_one(std::unique_lock<std::mutex>& lock);
  bool begin_stop(bool and_close);
  bool over();
};

BlockingLane::BlockingLane(std::shared_ptr<BlockingLibrary> library, int ranks, std::chrono::nanoseconds timeout,
                           std::function<void()> ring)
    : state_(std::make_shared<State>()) {
  state_->ring = std::move(ring);
  state_->library = std::move(library);
  state_->ranks = ranks;
  state_->timeout = timeout;
}

Transfer* BlockingLane::start(const Call& call) {
  auto errand = std::make_shared<Errand>(call, state_->ranks);
  auto transfer = std::make_unique<ErrandTransfer>(errand);
  const std::lock_guard lock(state_->mutex);
  if (state_->stopped) throw Error(ErrorKind::aborted, "the lane was aborted");
  auto& strand = state_->strands[strand_of(call)];
  strand.push_back(std::move(errand));
  if (strand.size() > 1) return transfer.release();
  state_->ready.push_back(strand_of(call));
  if (state_->idle < state_->ready.size()) {
    // Counted: the destructor waits for it
    start_quiet_thread("medley-worker", [state = state_] { State::work(state); }).detach();
    ++state_->workers;
  }
  state_->changed.notify_all();
  return transfer.release();
}

void BlockingLane::State::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->closing) {
    if (!state->ready.empty()) {
      state->run_one(lock);
      continue;
    }
    ++state->idle;
    state->changed.wait(lock);
    --state->idle;
  }
  --state->workers;
  state->changed.notify_all();
}

void BlockingLane::State::run_one(std::unique_lock<std::mutex>& lock) {
  const Strand strand = ready.front();
  ready.pop_front();
  const std::shared_ptr<Errand> errand = strands[strand].front();
  ++performing;
  lock.unlock();
  try {
    errand->source = library->perform(errand->call, deadline_after(timeout));
  } catch (...) {
    errand->thrown = std::current_exception();
  }
  lock.lock();
  --performing;  // before anybody sees `done`: a lane that is closed then has nothing running
  errand->done.store(true, std::memory_order_release);  // pairs with the acquire load in ErrandTransfer::poll()
  if (ring) ring();
  if (stopped) {  // pending operations were dropped, and nothing more may run
    changed.notify_all();
    return;
  }
  auto& waiting = strands[strand];
  waiting.pop_front();
  if (waiting.empty()) {
    strands.erase(strand);
  } else {
    ready.push_back(strand);
  }
}

/// True for the first caller. Drops operations that have not begun; the engine only releases them.
bool BlockingLane::State::begin_stop(bool and_close) {
  const std::lock_guard lock(mutex);
  const bool first = !stopped;
  if (first || (and_close && !closing)) limit = deadline_after(grace);
  stopped = true;
  closing = closing || and_close;
  ready.clear();
  strands.clear();
  changed.notify_all();
  return first;
}

/// Whether no worker is inside the library, or one has not returned within the grace period.
bool BlockingLane::State::over() {
  const std::lock_guard lock(mutex);
  return (performing == 0 && (!closing || workers == 0)) || std::chrono::steady_clock::now() >= limit;
}

void BlockingLane::check() { state_->library->check(); }

void BlockingLane::abort(const Error& why) noexcept {
  if (state_->begin_stop(false)) state_->library->stop(why);
}

bool BlockingLane::poll_abort() noexcept { return state_->library->poll_stop() && state_->over(); }

bool BlockingLane::poll_close() noexcept {
  if (!state_->fork_guard.here()) return true;
  bool running = false;
  {
    const std::lock_guard lock(state_->mutex);
    running = state_->performing > 0;
  }
  const bool first = state_->begin_stop(true);
  if (first && running) state_->library->stop(Error(ErrorKind::aborted, "its comm was closed"));
  return state_->library->poll_stop() && state_->over();
}

BlockingLane::~BlockingLane() {
  if (!state_->fork_guard.here()) {  // a forked child has no workers, and the lock may be held by one for ever
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  while (!poll_close()) std::this_thread::yield();  // destroyed without having been closed
}

}  // namespace medley

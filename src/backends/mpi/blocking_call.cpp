// MPI calls that block on other ranks. If one of those has died, such a call never returns.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <exception>
#include <medley/sdk/may_block.hpp>
#include <medley/sdk/quiet_thread.hpp>
#include <utility>

#include "backends/mpi/library.hpp"

namespace medley::mpi {
namespace {

constexpr auto look_interval = std::chrono::milliseconds(10);  // interval of checks for dead members

/// A thread that makes one call after the other and may never return from one. It stays between calls: on a busy core a
/// new thread is scheduled after all others, which doubles the time of making a comm; a woken one is scheduled before
/// them.
class CallingThread {
 public:
  /// One per process; never destroyed, since its thread stays until the end.
  static CallingThread& of_process() {
    static auto* const thread = new CallingThread;
    return *thread;
  }
  void start(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    if (!started_) start_quiet_thread("medley-mpi", [this] { run(); }).detach();
    started_ = true;
    call_ = std::move(call);
    wanted_.notify_one();
  }
  /// Whether the call has returned within a moment.
  bool wait_a_moment() {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, look_interval, [this] { return !call_; });
  }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wanted_.wait(lock, [this] { return static_cast<bool>(call_); });
      lock.unlock();
      std::exception_ptr thrown;
      try {
        call_();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      error_ = thrown;
      call_ = nullptr;
      ended_.notify_one();
    }
  }
  std::mutex mutex_;
  std::condition_variable wanted_, ended_;
  std::function<void()> call_;  ///< empty: idle
  std::exception_ptr error_;
  bool started_ = false;
};

}  // namespace

void Library::remember_process(int process, int mpi_rank) {
  const std::lock_guard lock(processes_mutex_);
  for (const Process& known : processes_) {
    if (known.number == process) return;
  }
  processes_.push_back({process, mpi_rank, Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)))});
}

bool Library::lose_process(int process) noexcept {
  const std::lock_guard lock(processes_mutex_);
  for (const Process& known : processes_) {
    if (known.number != process) continue;
    lose(known.mpi_rank);
    return true;
  }
  return false;
}

/// Ranks that died without a farewell come first: the others have exited because of them.
bool Library::lose_dead() noexcept {
  const std::lock_guard lock(processes_mutex_);
  int ended = -1;
  for (const Process& known : processes_) {
    pollfd file{known.file.fd(), POLLIN, 0};
    const bool dead =
        known.file ? ::poll(&file, 1, 0) == 1 : kill(known.number, 0) != 0 && errno == ESRCH;  // no pidfds here
    if (!dead) continue;
    ended = known.mpi_rank;
    if (!said_farewell(known.mpi_rank)) break;
  }
  if (ended >= 0) lose(ended);
  return ended >= 0;
}

void Library::call_blocking(const std::vector<int>& mpi_ranks, Deadline deadline, std::function<void()> calls) {
  const Guard guard(lock_);
  require_usable();
  if (one_thread_only_ || mpi_ranks.size() < 2) return calls();
  const MayBlockUnderLock waits_for_ranks;
  CallingThread& thread = CallingThread::of_process();
  thread.start(std::move(calls));
  while (!thread.wait_a_moment()) {
    lose_dead();
    if (lost_rank() < 0 && std::chrono::steady_clock::now() < deadline) continue;
    stuck_ = true;  // the thread is inside MPI until the process ends
    require_usable();
  }
  thread.rethrow();
}

}  // namespace medley::mpi

// The exit of a process in which we started MPI. MPI_Finalize waits for every rank, so it is called at once only after
// success here; otherwise only when every rank has reached its exit too.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <medley/sdk/quiet_thread.hpp>
#include <thread>

#include "backends/mpi/library.hpp"

namespace medley::mpi {
namespace {

// After a failure ranks reach their exits within moments of each other, or not at all.
constexpr auto timeout = std::chrono::seconds(3);
// Peers free the communicators that they share at about the same time. MPICH complains of barriers that it must leave
// unfinished: 4 ranks on 2 cores waited up to 77 ms.
constexpr auto longest_reclaim = std::chrono::seconds(1);

std::string farewell_key(int mpi_rank) { return fmt::format("left/{}", mpi_rank); }

}  // namespace

void Library::remember_farewell(const BackendParams& params) {
  store_ = params.store;
  size_ = params.size;
}

void Library::say_farewell() noexcept {
  try {
    const std::lock_guard lock(processes_mutex_);
    for (const Process& known : processes_) {
      if (store_ && known.number == getpid()) store_->set(farewell_key(known.mpi_rank), "1");
    }
  } catch (...) {  // the store went with another rank
  }
}

bool Library::said_farewell(int mpi_rank) noexcept {
  try {
    return store_ && store_->try_get(farewell_key(mpi_rank)).has_value();
  } catch (...) {
    return false;
  }
}

bool Library::all_leave(bool wait) noexcept {
  try {
    if (!store_) return false;
    const Deadline until = std::chrono::steady_clock::now() + timeout;
    std::int64_t leaving = store_->add("leaving", 1);
    while (wait && leaving < size_ && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      leaving = store_->add("leaving", 0);
    }
    return leaving >= size_;
  } catch (...) {
    return false;  // the store went with another rank
  }
}

/// MPI_Finalize never returns when a rank dies in it. The program has ended by then, so the process exits instead.
void Library::finalize(int status) noexcept {
  std::atomic<bool> finalised = false;
  std::thread watch;
  try {
    watch = start_quiet_thread("medley-mpi", [&] {
      Deadline alive = std::chrono::steady_clock::now();
      while (!finalised) {
        const Deadline now = std::chrono::steady_clock::now();
        if (!lose_dead()) alive = now;
        if (now - alive > timeout) {  // ranks that finished it may have exited
          std::fflush(nullptr);
          _exit(status);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  } catch (...) {  // no thread could be started
  }
  MPI_Finalize();
  finalised = true;
  if (watch.joinable()) watch.join();
}

/// `status` is the exit status of the process; a failing process must not wait for ranks that wait for it.
void Library::end(int status) noexcept {
  if (fork_guard_.here()) say_farewell();
  if (!callable()) return;
  const bool all_is_well = status == 0 && !aborted_;
  const bool all_leave_too = all_leave(!all_is_well);
  if (!all_is_well && !all_leave_too) return;
  if (lose_dead()) return;  // other ranks may not have been notified yet
  const Guard guard(lock_);
  const Deadline until = std::chrono::steady_clock::now() + longest_reclaim;
  for (reclaim(); !deferred_.empty() && !aborted_ && std::chrono::steady_clock::now() < until && !lose_dead();
       reclaim())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  finalize(status);
}

}  // namespace medley::mpi

// The end of a process in which we started MPI. MPI_Finalize waits for every rank, so it is called at once
// only when all went well here; otherwise only when every rank has come to its end too.
#include <cstdlib>
#include <thread>

#include "backends/mpi/library.hpp"

namespace medley::mpi {
namespace {

// After a failure ranks come to their ends within moments of each other, or not at all.
constexpr auto patience = std::chrono::seconds(3);

}  // namespace

void Library::remember_farewell(const Surroundings& surroundings) {
  store_ = surroundings.store;
  size_ = surroundings.size;
}

bool Library::all_leave(bool wait) noexcept {
  try {
    if (!store_) return false;
    const Deadline until = std::chrono::steady_clock::now() + patience;
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

/// `status` is what the process exits with; one that fails must not wait for ranks that wait for it.
void Library::end(int status) noexcept {
  if (!fork_guard_.here() || !usable() || wrong_thread()) return;
  const bool all_is_well = status == 0 && !aborted_ && !poison_;
  const bool all_leave_too = all_leave(!all_is_well && !poison_);
  if (!all_is_well && !all_leave_too) return;
  const Guard guard(lock_);
  sweep();
  MPI_Finalize();
}

}  // namespace medley::mpi

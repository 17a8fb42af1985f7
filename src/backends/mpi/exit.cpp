// The end of a process in which we started MPI. MPI_Finalize waits for every rank, so it is called at once
// only when all went well; otherwise the ranks first tell each other that they have come to their end.
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
  rank_ = surroundings.rank;
  size_ = surroundings.size;
}

bool Library::all_leave() noexcept {
  try {
    if (!store_) return false;
    const Deadline until = std::chrono::steady_clock::now() + patience;
    store_->add("leaving", 1);
    while (store_->add("leaving", 0) < size_) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  } catch (...) {
    return false;  // the store went with another rank
  }
}

/// `status` is what the process exits with; one that fails must not wait for ranks that wait for it.
void Library::end(int status) noexcept {
  if (!fork_guard_.here() || !usable() || wrong_thread()) return;
  const bool all_is_well = status == 0 && !aborted_ && !poison_;
  if (!all_is_well && (poison_ || !all_leave())) return;
  const Guard guard(lock_);
  MPI_Finalize();
}

}  // namespace medley::mpi

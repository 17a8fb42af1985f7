#include <medley/sdk/biased_lock.hpp>

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <medley/sdk/pause.hpp>

namespace medley {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool may_bias = false;
#else
constexpr bool may_bias = true;
#endif

bool membarrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

BiasedLock::BiasedLock() noexcept {
  const bool biased = may_bias && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  // relaxed: nobody else knows the lock yet
  owner_.store(biased ? nobody : nobody_ever, std::memory_order_relaxed);
  revoked_.store(!biased, std::memory_order_relaxed);
}

/// The first thread of all gets the bias.
bool BiasedLock::take_bias() noexcept {
  std::uintptr_t first = nobody;
  // relaxed: only the thread that is stored here acts on it; the others revoke
  return owner_.load(std::memory_order_relaxed) == nobody &&
         owner_.compare_exchange_strong(first, this_thread(), std::memory_order_relaxed);
}

/// Another thread has revoked it.
void BiasedLock::give_up_bias() noexcept {
  inside_.store(false, std::memory_order_release);       // pairs with the acquire load in revoke()
  owner_.store(nobody_ever, std::memory_order_relaxed);  // relaxed: for this thread's own later look
}

void BiasedLock::lock_shared() noexcept {
  // relaxed: the second load is of the calling thread's own id, which only it stores. The first pairs with the release
  // store in revoke(): the owner has left.
  if (!revoked_.load(std::memory_order_acquire) && owner_.load(std::memory_order_relaxed) != this_thread()) {
    if (take_bias()) return lock();
    revoke();
  }
  spinlock_.lock();
}

/// Several threads may revoke at once; each waits until the owner has left.
[[gnu::cold]] void BiasedLock::revoke() noexcept {
  revoking_.store(true, std::memory_order_seq_cst);
  if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) && !membarrier(MEMBARRIER_CMD_GLOBAL)) {
    std::fprintf(stderr,
                 "medley: membarrier() worked when this context was made and fails now: %s; a system call filter must "
                 "allow it or be installed before the context is made\n",
                 std::strerror(errno));
    std::abort();  // without it two threads could hold the lock
  }
  // Pairs with the release stores in lock() and unlock(): what the owner wrote under the lock is seen.
  for (int spins = 0; inside_.load(std::memory_order_acquire); ++spins) {
    if (spins < 100) {
      pause();
    } else {
      sched_yield();  // the owner may be in a long copy, or need this core
    }
  }
  revoked_.store(true, std::memory_order_release);  // pairs with the acquire load in lock_shared()
}

}  // namespace medley

// The lock of the engine, and of a library that must not be called twice at once: free of atomic read-modify-write
// operations while one thread alone takes it, which is how most programs use a context.
#pragma once

#include <atomic>
#include <cstdint>
#include <medley/export.hpp>
#include <medley/sdk/may_block.hpp>
#include <medley/sdk/spinlock.hpp>

namespace medley {

// An atomic exchange waits until every earlier store has left the processor. After a message those are stores to a line
// that another core has, 60 to 140 ns away: eight sends in a row waited for eight lines one after the other. So the
// lock is biased to the first thread that takes it: that thread sets a flag and looks whether the bias still holds. The
// first other thread revokes the bias for good, and from then on all take a spinlock.
//
// The owner stores `inside_` and then loads `revoking_`; the revoker stores `revoking_` and then loads `inside_`. Each
// must see the other's store or be seen. Only the revoker pays for that: membarrier() makes every running thread of the
// process execute a full barrier. If the owner's load came before that barrier, so did its store, and the revoker sees
// it inside and waits; if it comes after, it sees `revoking_` and takes the spinlock. (tests/spin/biased_lock.pml)
class MEDLEY_API BiasedLock {
 public:
  /// Without membarrier(), and under ThreadSanitizer, which does not know it, the lock is never biased.
  BiasedLock() noexcept;
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  [[gnu::always_inline]] void lock() noexcept {
    // relaxed: only the calling thread stores its own id here
    if (owner_.load(std::memory_order_relaxed) == this_thread()) [[likely]] {
      inside_.store(true, std::memory_order_relaxed);       // relaxed: the revoker's membarrier() orders it, as above
      std::atomic_signal_fence(std::memory_order_seq_cst);  // the compiler keeps store and load in order
      // Acquire on processors that reorder loads: what the lock guards is read after it. Pairs with the store in
      // revoke().
      if (!revoking_.load(std::memory_order_acquire)) [[likely]]
        return count_engine_lock(1);
      give_up_bias();
    }
    lock_shared();
  }
  [[gnu::always_inline]] void unlock() noexcept {
    if (held_by_bias()) [[likely]] {
      count_engine_lock(-1);
      inside_.store(false, std::memory_order_release);  // pairs with the acquire load in revoke()
    } else {
      spinlock_.unlock();
    }
  }
  /// Whether the calling thread holds it.
  bool held_here() const noexcept { return held_by_bias() || spinlock_.held_here(); }

 private:
  /// One address per thread, in one instruction.
  static std::uintptr_t this_thread() noexcept { return reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()); }
  static constexpr std::uintptr_t nobody = 0, nobody_ever = 1;
  [[gnu::always_inline]] bool held_by_bias() const noexcept {
    // relaxed: both are the calling thread's own stores, where it is the owner
    return owner_.load(std::memory_order_relaxed) == this_thread() && inside_.load(std::memory_order_relaxed);
  }
  void give_up_bias() noexcept;
  void lock_shared() noexcept;
  bool take_bias() noexcept;
  void revoke() noexcept;

  /// The thread that it is biased to, or was; `nobody`: no thread has locked it yet
  std::atomic<std::uintptr_t> owner_;
  std::atomic<bool> inside_{false};    ///< the owner holds it by its bias
  std::atomic<bool> revoking_{false};  ///< never cleared
  std::atomic<bool> revoked_{false};   ///< the owner takes the spinlock from now on, like all others
  Spinlock spinlock_;
};

}  // namespace medley

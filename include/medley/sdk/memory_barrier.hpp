// Memory barriers for data that no C++ object's rules cover: memory that the kernel copies between processes. x86 keeps loads in
// order and stores in order by itself, AArch64 does not. Used by the shm backend where direct reads meet an abort.
#pragma once

namespace medley {

/// Stores before it are seen by every core before the stores after it. Pairs with a read_barrier() of whoever reads both.
inline void write_barrier() {
#if defined(__aarch64__)
  asm volatile("dmb ishst" : : : "memory");
#else
  asm volatile("" : : : "memory");
#endif
}

/// Loads before it have their values before the loads after it. Pairs with the write_barrier() of who wrote both.
inline void read_barrier() {
#if defined(__aarch64__)
  asm volatile("dmb ishld" : : : "memory");
#else
  asm volatile("" : : : "memory");
#endif
}

}  // namespace medley

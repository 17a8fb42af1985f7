// Memory barriers for data outside the C++ memory model: memory that the kernel copies between processes. x86 keeps
// loads in order and stores in order by itself, AArch64 does not. Used by the shm backend where direct reads race with
// an abort.
#pragma once

namespace medley {

/// Every core sees the stores before it before the stores after it. Pairs with a read_barrier() of the reader of both.
inline void write_barrier() {
#if defined(__aarch64__)
  asm volatile("dmb ishst" : : : "memory");
#else
  asm volatile("" : : : "memory");
#endif
}

/// Loads before it have their values before the loads after it. Pairs with the write_barrier() of the writer of both.
inline void read_barrier() {
#if defined(__aarch64__)
  asm volatile("dmb ishld" : : : "memory");
#else
  asm volatile("" : : : "memory");
#endif
}

}  // namespace medley

// What spin loops and measurements tell the core.
#pragma once

namespace medley {

/// This is a spin loop.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");   // some tens of cycles, as x86's pause; `yield` does nothing on cores without hyper-threads
#endif
}

/// Goes on when every load before it has its data, which a clock read after it would not wait for by itself.
inline void await_loads() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("dsb ld; isb" : : : "memory");
#endif
}

}  // namespace medley

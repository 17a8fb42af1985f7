// What spin loops and measurements tell the core.
#pragma once

namespace medley::core {

/// This is a spin loop.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
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

}  // namespace medley::core

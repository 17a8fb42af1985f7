// Processor hints for spin loops and shared lines, and a load fence for measurements.
#pragma once

namespace medley {

/// The spin-loop hint.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // some tens of cycles, as x86's pause; `yield` does nothing on cores without hyper-threads
#endif
}

/// Fetches the line of a word that will be written. In assembler, since without options for newer processors
/// the compiler fetches it for reading, which does not help.
inline void prefetch_to_write(const void* word) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(word)));
#else
  __builtin_prefetch(word, 1);
#endif
}

/// Waits until every earlier load has its data; a later clock read alone would not wait for that.
inline void await_loads() {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("dsb ld; isb" : : : "memory");
#endif
}

}  // namespace medley

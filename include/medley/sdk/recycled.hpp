// A base class that recycles the memory of short-lived per-operation objects, per thread: glibc caches seven blocks of a
// size and is slow beyond that, while dozens of launches on a device may be pending.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace medley {

template <class T>
class Recycled {
 public:
  // Not inlined: the compiler would see one half of a pair and warn.
  [[gnu::noinline]] static void* operator new(std::size_t bytes) {
    Kept& kept = of_thread();
    if (!kept.first) return ::operator new(bytes);
    --kept.count;
    return std::exchange(kept.first, kept.first->next);
  }
  [[gnu::noinline]] static void operator delete(void* memory) noexcept {
    Kept& kept = of_thread();
    if (kept.count == max_kept || thread_ends_) return ::operator delete(memory);
    kept.first = new (memory) Free{kept.first};
    ++kept.count;
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::size_t max_kept = 0;   // otherwise sanitizers would miss uses after free
#else
  static constexpr std::size_t max_kept = 64;
#endif
  struct Free {
    Free* next;
  };
  struct Kept {
    Free* first = nullptr;
    std::size_t count = 0;
    ~Kept() {
      thread_ends_ = true;
      while (first) ::operator delete(std::exchange(first, first->next));
      static_assert(sizeof(T) >= sizeof(Free));
    }
  };
  static Kept& of_thread() {
    thread_local Kept kept;
    return kept;
  }
  static inline thread_local bool thread_ends_ = false;   ///< static objects may be destroyed after this
};

}  // namespace medley

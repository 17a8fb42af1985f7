// A per-thread free list for objects that are made and destroyed with every operation. The C library caches seven
// blocks of a size and is slow beyond that, while dozens of operations may be pending. A base class of such objects.
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
    FreeList& list = list_;
    if (!list.first) return ::operator new(bytes);
    ++list.free_slots;
    return std::exchange(list.first, list.first->next);
  }
  [[gnu::noinline]] static void operator delete(void* memory) noexcept {
    FreeList& list = list_;
    if (list.free_slots == 0 && !open(list)) return ::operator delete(memory);
    list.first = new (memory) Free{list.first};
    --list.free_slots;
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr std::size_t capacity = 0;  // otherwise sanitizers would miss uses after free
#else
  static constexpr std::size_t capacity = 64;
#endif
  struct Free {
    Free* next;
  };
  /// Has no destructor, so that an access needs no check whether it was constructed.
  struct FreeList {
    Free* first;
    std::size_t free_slots;  ///< blocks that it still takes; 0 before its first use and after the thread's end
    bool opened;
  };
  struct AtThreadEnd {
    ~AtThreadEnd() {  // static objects may be destroyed after this
      list_.free_slots = 0;
      while (list_.first) ::operator delete(std::exchange(list_.first, list_.first->next));
      static_assert(sizeof(T) >= sizeof(Free));
    }
  };
  /// The first use on a thread: the list takes blocks until the thread ends.
  static bool open(FreeList& list) noexcept {
    if (std::exchange(list.opened, true)) return false;
    // Local: GCC 12 rejects two inline thread_local members with destructors in one file
    static thread_local AtThreadEnd at_end;
    static_cast<void>(at_end);
    list.free_slots = capacity;
    return capacity > 0;
  }
  static inline constinit thread_local FreeList list_{};
};

}  // namespace medley

// madvise() whose answer counts: emulators (qemu-user) say yes to any advice and do nothing. Used where something depends on it.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace medley {

/// Whether the kernel took the advice and acts on it.
inline bool advise(void* begin, std::size_t bytes, int advice) noexcept {
  static const bool says_yes_to_all = madvise(nullptr, 0, -1) == 0;   // there is no such advice
  return madvise(begin, bytes, advice) == 0 && !says_yes_to_all;
}

}  // namespace medley

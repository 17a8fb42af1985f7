// madvise() with a reliable result: emulators (qemu-user) accept any advice and do nothing. Used where correctness
// depends on it.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace medley {

/// Whether the kernel accepted the advice and acts on it.
inline bool advise(void* begin, std::size_t bytes, int advice) noexcept {
  static const bool says_yes_to_all = madvise(nullptr, 0, -1) == 0;  // no such advice exists
  return madvise(begin, bytes, advice) == 0 && !says_yes_to_all;
}

}  // namespace medley

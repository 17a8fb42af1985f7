// Builds with MEDLEY_LOCK_CHECKS (Debug and sanitizer builds) check that no thread blocks while it holds the engine's
// lock: code that may wait for another thread, process or host calls may_block() first, which aborts with a message if
// the calling thread holds the lock.
#pragma once

#include <medley/export.hpp>

namespace medley {

#ifdef MEDLEY_LOCK_CHECKS
/// `what` completes the sentence "this thread waits for …".
MEDLEY_API void may_block(const char* what) noexcept;
/// Called by the engine's lock.
MEDLEY_API void count_engine_lock(int change) noexcept;
#else
inline void may_block(const char*) noexcept {}
inline void count_engine_lock(int) noexcept {}
#endif

/// While it exists, the calling thread may block although it holds one lock: that of a library whose call waits for other
/// ranks under it.
class MayBlockUnderLock {
 public:
  MayBlockUnderLock() noexcept { count_engine_lock(-1); }
  ~MayBlockUnderLock() { count_engine_lock(1); }
  MayBlockUnderLock(const MayBlockUnderLock&) = delete;
  MayBlockUnderLock& operator=(const MayBlockUnderLock&) = delete;
};

}  // namespace medley

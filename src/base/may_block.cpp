#include <medley/sdk/may_block.hpp>

#ifdef MEDLEY_LOCK_CHECKS

#include <cstdio>
#include <cstdlib>

namespace medley {
namespace {

thread_local int engine_locks_held = 0;

}  // namespace

void count_engine_lock(int change) noexcept { engine_locks_held += change; }

void may_block(const char* what) noexcept {
  if (engine_locks_held == 0) return;
  std::fprintf(stderr, "medley: this thread waits for %s while it holds the engine's lock\n", what);
  std::abort();
}

}  // namespace medley

#endif

#include <utility>

#include "engine/comm_state.hpp"
#include "engine/operation.hpp"

namespace medley::core {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t capacity = 0;  // otherwise sanitizers would miss uses after free
#else
constexpr std::size_t capacity = 128;
#endif

/// Of one thread. Has no destructor, as the list of Recycled; linked by `among_pending`, which a complete operation
/// does not use.
struct Kept {
  Operation* first;
  std::size_t left;  ///< how many more it may keep; 0 before its first use and after the thread's end
  bool opened;
};
constinit thread_local Kept kept{};

struct AtThreadEnd {
  ~AtThreadEnd() {
    kept.left = 0;
    while (kept.first) delete std::exchange(kept.first, kept.first->among_pending.next);
  }
};

/// The first use on a thread: it keeps operations until the thread ends.
[[gnu::noinline]] bool open(Kept& list) noexcept {
  if (std::exchange(list.opened, true)) return false;
  static thread_local AtThreadEnd at_end;
  static_cast<void>(at_end);
  list.left = capacity;
  return capacity > 0;
}

}  // namespace

Operation* OperationPool::take() {
  Kept& list = kept;
  if (!list.first) return new Operation;
  ++list.left;
  return std::exchange(list.first, std::exchange(list.first->among_pending.next, nullptr));
}

void OperationPool::keep(Operation& operation) noexcept {
  operation.comm.reset();
  Kept& list = kept;
  if (list.left == 0 && !open(list)) {
    delete &operation;
    return;
  }
  operation.last_dependent = 0;
  operation.orphaned = operation.reusable = operation.stream_waits = operation.followed = false;
  if (operation.awaited_elsewhere) {
    operation.awaited_elsewhere = false;
    operation.awaited_records.clear();
  }
  // relaxed: nobody else refers to it any more
  operation.source.store(-1, std::memory_order_relaxed);
  operation.among_pending.next = list.first;
  list.first = &operation;
  --list.left;
}

}  // namespace medley::core

#include "engine/progress_thread.hpp"

#include <medley/sdk/quiet_thread.hpp>

#include "engine/engine.hpp"

namespace medley::core {

ProgressThread::ProgressThread(Engine& engine) : engine_(engine) {
  thread_ = start_quiet_thread("medley", [this] { run(); });
}

ProgressThread::~ProgressThread() {
  // Sequentially consistent, as are going_idle() and stopping(): either the thread sees the stop, or this store comes
  // after its own to idle_ and ends its wait. With weaker orders each could miss the other.
  stop_.store(true);
  idle_.store(false);
  idle_.notify_one();
  thread_.join();
}

void ProgressThread::run() {
  while (!stopping()) {
    engine_.run_progress_thread(*this);
    // relaxed: the cause of the wake-up is read under the engine's lock; a stop pairs as ~ProgressThread() says
    if (!stopping()) idle_.wait(true, std::memory_order_relaxed);
  }
}

}  // namespace medley::core

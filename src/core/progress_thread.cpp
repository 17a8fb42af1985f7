#include "core/progress_thread.hpp"

#include "bootstrap/quiet_thread.hpp"
#include "core/engine.hpp"

namespace medley::core {

ProgressThread::ProgressThread(Engine& engine) : engine_(engine) {
  thread_ = start_quiet_thread("medley", [this] { run(); });
}

ProgressThread::~ProgressThread() {
  stop_.store(true, std::memory_order_relaxed);
  idle_.store(false, std::memory_order_relaxed);
  idle_.notify_one();
  thread_.join();
}

void ProgressThread::run() {
  while (!stopping()) {
    engine_.tend(*this);
    if (!stopping()) idle_.wait(true, std::memory_order_relaxed);
  }
}

}  // namespace medley::core

#include "core/progress_thread.hpp"

#include <pthread.h>

#include <csignal>

#include "core/engine.hpp"

namespace medley::core {

ProgressThread::ProgressThread(Engine& engine) : engine_(engine) {
  // Signals are the program's: none may be handled on this thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "medley");
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

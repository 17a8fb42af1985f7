// Blocks SIGPIPE while Gloo writes: it calls writev on sockets whose peer may be gone, and the signal would end the
// process instead of giving an error. Used wherever a thread of ours calls into Gloo.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <ctime>

namespace medley::gloo_backend {

class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    if (sigismember(&before_, SIGPIPE)) return;
    const timespec now{};
    sigtimedwait(&pipe_, nullptr, &now);  // a signal that came meanwhile is ours
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_{}, before_{};
};

}  // namespace medley::gloo_backend

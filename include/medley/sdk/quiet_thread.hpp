// Starts a thread that blocks all signals: they belong to the program's own threads. Used for every thread that Medley
// starts in a user's process.
#pragma once

#include <pthread.h>
#include <medley/sdk/launcher_cores.hpp>

#include <csignal>
#include <thread>
#include <utility>

namespace medley {

/// `name`: as `ps -L` shows it, at most 15 characters.
template <class Body>
std::thread start_quiet_thread(const char* name, Body&& body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const UnboundThreadScope unbound;
  std::thread thread(std::forward<Body>(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace medley

#include "control/fork_registry.hpp"

#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <set>

namespace medley::control {
namespace {

struct Open {
  std::mutex mutex;
  std::set<int> files;
};

Open& all() {
  static auto* const open = new Open;  // never destroyed: a fork may happen at any time
  return *open;
}

// The lock is held across the fork, so that the child finds a consistent list.
void before() { all().mutex.lock(); }
void in_parent() { all().mutex.unlock(); }
void in_child() {
  for (int file : all().files) close(file);
  all().files.clear();
  all().mutex.unlock();
}

}  // namespace

OwnSocket::OwnSocket(Descriptor socket) : socket_(std::move(socket)) {
  static const int registered = pthread_atfork(before, in_parent, in_child);
  static_cast<void>(registered);
  const std::lock_guard lock(all().mutex);
  if (socket_) all().files.insert(socket_.fd());
}

OwnSocket::~OwnSocket() {
  if (!socket_) return;
  const std::lock_guard lock(all().mutex);
  // A socket that is not listed was closed by a fork, and another file may have its number by now.
  if (all().files.erase(socket_.fd()) == 0) static_cast<void>(socket_.release());
  socket_.reset();
}

}  // namespace medley::control

// Whether another process of this host has exited, according to the kernel. Used by the tag matcher: a closed
// connection is not enough, since a child forked from a dead rank keeps its sockets open.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace medley::gloo_backend {

class ProcessWatch {
 public:
  ProcessWatch() = default;
  explicit ProcessWatch(pid_t process)
      : fd_(process == getpid() ? -1 : static_cast<int>(syscall(SYS_pidfd_open, process, 0))) {}
  ProcessWatch(ProcessWatch&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ProcessWatch& operator=(ProcessWatch&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ProcessWatch() {
    if (fd_ >= 0) close(fd_);
  }
  bool ended() const {
    pollfd seen{.fd = fd_, .events = POLLIN, .revents = 0};
    return fd_ >= 0 && poll(&seen, 1, 0) == 1;
  }

 private:
  int fd_ = -1;
};

}  // namespace medley::gloo_backend

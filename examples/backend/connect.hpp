// Connects every pair of ranks of a comm with a Unix-domain socket.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <medley/backend.hpp>
#include <utility>
#include <vector>

namespace socket_backend {

/// A socket that is closed with its owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A non-blocking stream to every other rank, by rank; the own entry is empty. Throws when the deadline
/// passes.
std::vector<Socket> connect_all(const medley::CommParams& params);

}  // namespace socket_backend

// Sockets that a forked child must not keep open: otherwise the parent's peers would consider a dead parent alive.
#pragma once

#include <utility>

#include <medley/sdk/descriptor.hpp>

namespace medley::control {

/// A socket that every child closes at the fork.
class OwnSocket {
 public:
  OwnSocket() = default;
  explicit OwnSocket(Descriptor socket);
  ~OwnSocket();
  OwnSocket(OwnSocket&&) noexcept = default;
  OwnSocket& operator=(OwnSocket&&) = delete;
  int fd() const { return socket_.fd(); }
  const Descriptor& descriptor() const { return socket_; }

 private:
  Descriptor socket_;
};

}  // namespace medley::control

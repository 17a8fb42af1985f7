// Sockets that a forked child must not keep open: while it does, its parent's peers would take the parent for alive.
#pragma once

#include <utility>

#include <medley/sdk/descriptor.hpp>

namespace medley::control {

/// A socket that is closed in every child at the moment of the fork.
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

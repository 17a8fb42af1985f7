// Serves a job's key-value store on one background thread; owned by rank 0 or by `medley run`.
// Unauthenticated clients that connect, send garbage or stall neither get in nor delay anyone.
#pragma once

#include <medley/export.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace medley {

struct StoreServerOptions {
  /// "@name" for an abstract Unix socket, an address or "localhost" to bind just that, any other name or ""
  /// for every interface (a host's own name often resolves to loopback on that host, so it cannot say where
  /// to listen).
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;                           ///< 0: any free one
  int ports = 1;                                    ///< consecutive ports tried in order
  std::string token;                                ///< what a rank must prove to know
  int size = 0;                                     ///< the world size ranks must agree on; 0: not checked
  std::chrono::milliseconds handshake_limit{3000};  ///< a connection that has not authenticated by then is closed
  int strangers = 128;  ///< unauthenticated connections held at a time; one more drops the oldest
};

class MEDLEY_API StoreServer {
 public:
  explicit StoreServer(const StoreServerOptions& options);
  /// Stops at once: waiting clients see the connection close.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  std::uint16_t port() const;
  /// Waits until no rank is connected any more, at most for `limit`; true when all have left.
  bool drain(std::chrono::milliseconds limit);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace medley

// The address where a rank's control thread listens, as published to the other ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace medley::control {

/// The endpoint of one rank, as exchanged through the store.
struct Endpoint {
  std::string host;  ///< identity: equal for ranks that share a host
  std::int64_t pid = 0;
  std::uint16_t port = 0;
  std::vector<std::string> addresses;  ///< numeric, of all its interfaces

  std::string to_text() const;
  static Endpoint from_text(const std::string& text);
};

/// Numeric addresses of this host that others may reach: all interfaces that are up, except loopback.
std::vector<std::string> own_addresses();

}  // namespace medley::control

// Stream sockets with deadlines: TCP over IPv4 and IPv6, and abstract Unix sockets for "@name".
// Used by the store's server and client; every descriptor is close-on-exec, no write raises SIGPIPE.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <medley/sdk/descriptor.hpp>
#include <string>

#include "bootstrap/store.hpp"

namespace medley {

/// Listens, non-blocking, on the first of `ports` that is free. Error when none is.
Descriptor listen_on(const std::string& host, std::uint16_t port, int ports);

/// The port of a listening socket; 0 for "@name".
std::uint16_t port_of(const Descriptor& socket);

/// The numeric address of this end; empty for "@name".
std::string own_end(const Descriptor& socket);

/// Connects to one address of `host`; empty, with the reason in `why`, when nobody answers in time.
Descriptor connect_to(const std::string& host, std::uint16_t port, Deadline deadline, std::string& why);

/// Sends small messages at once (no Nagle), and detects a vanished host by keep-alive.
void prefer_promptness(const Descriptor& socket);

/// Whether the other end runs as this user, according to the kernel for "@name"; always true for TCP.
bool same_user(const Descriptor& socket);

/// False when the deadline passed first.
bool wait_readable(const Descriptor& socket, Deadline deadline);

/// Writes everything; false when the deadline passed or the connection broke (errno says which: ETIMEDOUT).
bool write_all(const Descriptor& socket, const void* bytes, std::size_t count, Deadline deadline);
/// Reads exactly `count` bytes; false as above, errno 0 when the other end closed.
bool read_all(const Descriptor& socket, void* bytes, std::size_t count, Deadline deadline);

}  // namespace medley

// Which of this machine's addresses Gloo listens on. Used by the backend, once per context.
#pragma once

#include <medley/backend.hpp>
#include <string>

namespace medley::gloo_backend {

/// What the user asked for (MEDLEY_GLOO_INTERFACE, else GLOO_SOCKET_IFNAME: an interface or an address), as
/// an address; empty when nothing was asked for. Throws when there is no such interface or address.
std::string asked_address();

/// The local address that packets to `other` leave from; empty when there is no route.
std::string address_towards(const std::string& other);

/// An address that other hosts can use.
bool leaves_host(const std::string& address);

}  // namespace medley::gloo_backend

#include "backends/gloo/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace medley::gloo_backend {
namespace {

std::string numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  return getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

/// The first IPv4 address of an interface, else its first IPv6 one.
std::string address_of_interface(const std::string& name) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  std::string four, six;
  for (const ifaddrs* i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || name != i->ifa_name) continue;
    if (i->ifa_addr->sa_family == AF_INET && four.empty()) four = numeric(i->ifa_addr, sizeof(sockaddr_in));
    if (i->ifa_addr->sa_family == AF_INET6 && six.empty()) six = numeric(i->ifa_addr, sizeof(sockaddr_in6));
  }
  freeifaddrs(all);
  return four.empty() ? six : four;
}

/// Calls visit(address) for every address of a name until one call returns a text.
template <class Visit>
std::string first_of(const std::string& host, const char* port, Visit visit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), port, &hints, &list) != 0) return {};
  std::string found;
  for (const addrinfo* a = list; a && found.empty(); a = a->ai_next) found = visit(*a);
  freeaddrinfo(list);
  return found;
}

/// A datagram socket; connecting it sends nothing.
template <class Use>
std::string with_socket(const addrinfo& to, Use use) {
  const int fd = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  const std::string result = use(fd);
  close(fd);
  return result;
}

}  // namespace

std::string asked_address() {
  for (const char* variable : {"MEDLEY_GLOO_INTERFACE", "GLOO_SOCKET_IFNAME"}) {
    const char* text = std::getenv(variable);
    if (!text || !*text) continue;
    if (std::string address = address_of_interface(text); !address.empty()) return address;
    const std::string own = first_of(text, nullptr, [](const addrinfo& a) {
      return with_socket(
          a, [&](int fd) { return bind(fd, a.ai_addr, a.ai_addrlen) == 0 ? numeric(a.ai_addr, a.ai_addrlen) : ""; });
    });
    if (!own.empty()) return own;
    throw Error(ErrorKind::invalid, fmt::format("{}={}: this machine has no such interface or address", variable, text),
                {.backend = "gloo"});
  }
  return {};
}

std::string address_towards(const std::string& other) {
  return first_of(other, "9", [](const addrinfo& a) {
    return with_socket(a, [&](int fd) -> std::string {
      sockaddr_storage own{};
      socklen_t length = sizeof own;
      if (connect(fd, a.ai_addr, a.ai_addrlen) != 0) return {};
      if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) return {};
      return numeric(reinterpret_cast<const sockaddr*>(&own), length);
    });
  });
}

bool leaves_host(const std::string& address) {
  return !address.empty() && address != "::1" && !address.starts_with("127.");
}

}  // namespace medley::gloo_backend

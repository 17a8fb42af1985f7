#include "bootstrap/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <medley/error.hpp>
#include <medley/sdk/may_block.hpp>
#include <memory>
#include <vector>

namespace medley {
namespace {

using std::chrono::milliseconds;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

// "@name": the abstract namespace, whose names start with a zero byte and vanish with their socket.
Address abstract_address(const std::string& host) {
  Address address;
  auto* name = reinterpret_cast<sockaddr_un*>(&address.storage);
  name->sun_family = AF_UNIX;
  const std::size_t length = std::min(host.size() - 1, sizeof name->sun_path - 1);
  std::memcpy(name->sun_path + 1, host.data() + 1, length);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

std::vector<Address> resolve(const std::string& host, std::uint16_t port, bool passive, std::string& why) {
  if (host.starts_with("@")) return {abstract_address(host)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), fmt::format("{}", port).c_str(), &hints, &list);
  if (error != 0) {
    why = fmt::format("the name \"{}\" cannot be resolved ({})", host, gai_strerror(error));
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<Address> addresses;
  for (; list; list = list->ai_next) {
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, list->ai_addr, list->ai_addrlen);
    address.length = list->ai_addrlen;
  }
  return addresses;
}

bool is_numeric(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return false;
  freeaddrinfo(list);
  return true;
}

Descriptor open_socket(const Address& address) {
  return Descriptor(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(const Descriptor& socket, int level, int option, int value) {
  setsockopt(socket.fd(), level, option, &value, sizeof value);  // each is optional
}

Descriptor try_listen(const Address& address) {
  Descriptor socket = open_socket(address);
  if (!socket) return {};
  if (address.storage.ss_family != AF_UNIX) set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  // Listening on every interface covers both protocols.
  if (address.storage.ss_family == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (bind(socket.fd(), address.raw(), address.length) != 0) return {};
  if (::listen(socket.fd(), SOMAXCONN) != 0) return {};
  return socket;
}

bool wait_for(const Descriptor& socket, short events, Deadline deadline) {
  may_block("a socket");
  for (;;) {
    const auto now = std::chrono::steady_clock::now();  // subtracting from Deadline::max() could overflow
    const auto left =
        deadline > now + milliseconds(60'000) ? 60'000 : std::chrono::ceil<milliseconds>(deadline - now).count();
    pollfd entry{socket.fd(), events, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && left <= 0) {
      errno = ETIMEDOUT;
      return false;
    }
  }
}

}  // namespace

Descriptor listen_on(const std::string& host, std::uint16_t port, int ports) {
  const bool just_there = host.starts_with("@") || host == "localhost" || is_numeric(host);
  int error = 0;
  std::string why;
  for (int i = 0; i < ports; ++i) {
    auto addresses = resolve(just_there ? host : "", static_cast<std::uint16_t>(port + i), true, why);
    // The IPv6 wildcard serves IPv4 too, so it comes first.
    std::stable_partition(addresses.begin(), addresses.end(),
                          [&](const Address& a) { return just_there || a.storage.ss_family == AF_INET6; });
    for (const Address& address : addresses) {
      Descriptor socket = try_listen(address);
      if (socket) return socket;
      error = errno;
    }
  }
  if (why.empty()) why = std::strerror(error);
  const std::string where = host.starts_with("@") ? host
                            : ports == 1          ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("{}, ports {} to {}", host, port, port + ports - 1);
  throw Error(ErrorKind::system,
              fmt::format("the store cannot listen on {}: {}; give every rank another free address, as "
                          "MEDLEY_STORE=host:port",
                          where, why));
}

std::string own_end(const Descriptor& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return {};
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return {};
  char text[NI_MAXHOST] = "";
  const bool told =
      getnameinfo(reinterpret_cast<const sockaddr*>(&name), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0;
  return told ? text : "";
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length);
  if (name.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&name)->sin_port);
  if (name.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&name)->sin6_port);
  return 0;
}

void prefer_promptness(const Descriptor& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Descriptor connect_to(const std::string& host, std::uint16_t port, Deadline deadline, std::string& why) {
  for (const Address& address : resolve(host, port, false, why)) {
    Descriptor socket = open_socket(address);
    if (!socket) {
      why = std::strerror(errno);
      continue;
    }
    // A host that drops packets must not use up the whole deadline: others may follow in the list.
    const Deadline soon = std::min(deadline, std::chrono::steady_clock::now() + milliseconds(2000));
    int error = connect(socket.fd(), address.raw(), address.length) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t length = sizeof error;
      if (!wait_for(socket, POLLOUT, soon)) {
        error = errno;
      } else {
        getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
      }
    }
    if (error == 0) {
      prefer_promptness(socket);
      return socket;
    }
    why = std::strerror(error);
  }
  return {};
}

bool same_user(const Descriptor& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return false;
  if (name.ss_family != AF_UNIX) return true;
  ucred peer{};
  length = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

bool wait_readable(const Descriptor& socket, Deadline deadline) { return wait_for(socket, POLLIN, deadline); }

bool write_all(const Descriptor& socket, const void* bytes, std::size_t count, Deadline deadline) {
  const char* next = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t sent = send(socket.fd(), next, count, MSG_NOSIGNAL);
    if (sent > 0) {
      next += sent;
      count -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool read_all(const Descriptor& socket, void* bytes, std::size_t count, Deadline deadline) {
  char* next = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t got = recv(socket.fd(), next, count, 0);
    if (got > 0) {
      next += got;
      count -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      errno = 0;
      return false;
    } else if (errno == EAGAIN) {
      if (!wait_for(socket, POLLIN, deadline)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace medley

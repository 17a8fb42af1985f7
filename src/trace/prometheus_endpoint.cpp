#include "trace/prometheus_endpoint.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <medley/error.hpp>

namespace medley::trace {

PrometheusEndpoint::PrometheusEndpoint(int port) {
  if (port == 0) return;
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(socket_, 8) != 0) {
    const int error = errno;
    close(socket_);
    throw Error(ErrorKind::invalid, fmt::format("--prometheus {}: {}", port, std::strerror(error)));
  }
}

PrometheusEndpoint::~PrometheusEndpoint() {
  if (socket_ >= 0) close(socket_);
}

void PrometheusEndpoint::serve(double seconds, const std::string& text, const std::function<bool()>& stop) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const double left = std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0 || stop()) return;
    pollfd waiting{socket_, POLLIN, 0};
    const int ready = poll(socket_ >= 0 ? &waiting : nullptr, socket_ >= 0 ? 1 : 0, static_cast<int>(left * 1000) + 1);
    if (ready > 0) answer(text);
  }
}

void PrometheusEndpoint::answer(const std::string& text) {
  const int client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const timeval timeout{1, 0};
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  char request[4096];
  static_cast<void>(recv(client, request, sizeof request, 0));
  const std::string reply = fmt::format(
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}",
      text.size(), text);
  static_cast<void>(send(client, reply.data(), reply.size(), MSG_NOSIGNAL));
  close(client);
}

}  // namespace medley::trace

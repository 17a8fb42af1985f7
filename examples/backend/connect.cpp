// Every rank listens, publishes its address in the comm's store, and connects to all ranks before it.
#include "connect.hpp"

#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

namespace socket_backend {
namespace {

using medley::CommParams;
using medley::Error;
using medley::ErrorKind;

Error system_error(const std::string& what) { return Error(ErrorKind::system, what + ": " + std::strerror(errno)); }

Socket new_socket() {
  Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made) throw system_error("cannot make a socket");
  return made;
}

/// Connecting must not block the rest of the program: every loop that waits for a peer lets Medley make
/// progress.
void go_on(const CommParams& params, int awaited) {
  if (std::chrono::steady_clock::now() > params.deadline) {
    throw Error(ErrorKind::timeout,
                "rank " + std::to_string(awaited) + " of comm " + params.name + " did not connect in time",
                {.ranks = {awaited}});
  }
  params.progress();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// Binds to an address that the kernel chooses (Linux's abstract names: no file is left behind) and returns
/// its bytes.
std::string listen_somewhere(const Socket& listener, int size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof address.sun_family;
  if (bind(listener.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener.fd(), size) != 0) {
    throw system_error("cannot listen on a socket");
  }
  length = sizeof address;
  getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&address), &length);
  return std::string(reinterpret_cast<const char*>(&address), length);
}

Socket call(const CommParams& params, int rank) {
  std::optional<std::string> address;
  while (!(address = params.store->try_get("address/" + std::to_string(rank)))) go_on(params, rank);
  sockaddr_un to{};
  std::memcpy(&to, address->data(), std::min(address->size(), sizeof to));
  Socket socket = new_socket();
  while (connect(socket.fd(), reinterpret_cast<sockaddr*>(&to), static_cast<socklen_t>(address->size())) != 0) {
    if (errno != EAGAIN && errno != EINTR) throw system_error("cannot connect to rank " + std::to_string(rank));
    go_on(params, rank);  // its backlog is full
  }
  const std::int32_t own = params.rank;
  if (send(socket.fd(), &own, sizeof own, MSG_NOSIGNAL) != sizeof own) throw system_error("cannot greet a rank");
  return socket;
}

/// Any process of this machine can guess an address; only the same user is accepted.
bool same_user(const Socket& caller) {
  ucred who{};
  socklen_t length = sizeof who;
  return getsockopt(caller.fd(), SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid();
}

/// The rank that a caller claims to be; its four bytes arrive together or not yet.
int greeting(const CommParams& params, const Socket& caller) {
  std::int32_t rank = -1;
  ssize_t got = 0;
  while ((got = recv(caller.fd(), &rank, sizeof rank, 0)) < 0 && (errno == EAGAIN || errno == EINTR))
    go_on(params, params.rank);
  return got == sizeof rank && rank > params.rank && rank < params.size ? rank : -1;
}

}  // namespace

std::vector<Socket> connect_all(const CommParams& params) {
  std::vector<Socket> streams(static_cast<std::size_t>(params.size));
  const Socket listener = new_socket();
  params.store->set("address/" + std::to_string(params.rank), listen_somewhere(listener, params.size));
  for (int r = 0; r < params.rank; ++r) streams[static_cast<std::size_t>(r)] = call(params, r);
  for (int missing = params.size - 1 - params.rank; missing > 0;) {
    Socket caller(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!caller) {
      int awaited = params.rank + 1;
      while (streams[static_cast<std::size_t>(awaited)]) ++awaited;
      go_on(params, awaited);
      continue;
    }
    const int rank = same_user(caller) ? greeting(params, caller) : -1;
    if (rank < 0 || streams[static_cast<std::size_t>(rank)]) continue;  // a stranger
    streams[static_cast<std::size_t>(rank)] = std::move(caller);
    --missing;
  }
  return streams;
}

}  // namespace socket_backend

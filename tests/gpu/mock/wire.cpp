#include "wire.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>

namespace medley::mock {
namespace {

constexpr int glance_ms = 5;  // how often a wait checks whether to give up

/// An abstract socket, without a file; or, for ranks in several network namespaces, a file in the folder
/// MOCK_NCCL_FOLDER.
sockaddr_un address_of(const std::string& name, int rank, socklen_t& length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const char* folder = std::getenv("MOCK_NCCL_FOLDER");
  const std::string text =
      (folder ? std::string(folder) + "/" : std::string(1, '\0')) + name + "-" + std::to_string(rank);
  std::memcpy(address.sun_path, text.data(), std::min(text.size(), sizeof address.sun_path - 1));
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
  return address;
}

/// One direction of one pair: frames of a length followed by that many bytes.
struct Flow {
  std::deque<Parcel> parcels;
  std::uint64_t length = 0;  ///< of the frame, sent or received
  std::size_t done = 0;      ///< bytes of the frame, including its length
  bool stuck = false;

  bool finished() const { return parcels.empty(); }
  /// Moves what it can without waiting; false when the peer is gone.
  bool move(int socket, bool out) {
    while (!parcels.empty() && !stuck) {
      Parcel& parcel = parcels.front();
      if (out) length = parcel.bytes;
      const bool in_length = done < sizeof length;
      std::byte* at = in_length ? reinterpret_cast<std::byte*>(&length) + done : parcel.data + (done - sizeof length);
      const std::size_t left = in_length ? sizeof length - done : parcel.bytes + sizeof length - done;
      if (left > 0) {
        const ssize_t moved =
            out ? send(socket, at, left, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(socket, at, left, MSG_DONTWAIT);
        if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (moved <= 0) return false;
        done += static_cast<std::size_t>(moved);
      }
      stuck = !out && done == sizeof length && length != parcel.bytes;
      if (!stuck && done == sizeof length + parcel.bytes && done >= sizeof length) {
        parcels.pop_front();
        done = 0;
      }
    }
    return true;
  }
};

}  // namespace

bool Wire::connect(const std::string& name, int ranks, int rank, const std::atomic<bool>& give_up) {
  sockets_.assign(static_cast<std::size_t>(ranks), -1);
  const int door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  socklen_t length = 0;
  sockaddr_un own = address_of(name, rank, length);
  if (bind(door, reinterpret_cast<sockaddr*>(&own), length) != 0 || listen(door, ranks) != 0) return false;
  for (int peer = 0; peer < rank; ++peer) {  // the lower rank listens
    const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un theirs = address_of(name, peer, length);
    while (::connect(made, reinterpret_cast<sockaddr*>(&theirs), length) != 0) {
      if (give_up) return ::close(made), ::close(door), false;
      usleep(500);
    }
    if (write(made, &rank, sizeof rank) != sizeof rank) return ::close(made), ::close(door), false;
    sockets_[static_cast<std::size_t>(peer)] = made;
  }
  for (int missing = ranks - rank - 1; missing > 0; --missing) {
    pollfd knock{door, POLLIN, 0};
    while (poll(&knock, 1, glance_ms) <= 0) {
      if (give_up) return ::close(door), false;
    }
    const int made = accept4(door, nullptr, nullptr, SOCK_CLOEXEC);
    int who = -1;
    if (read(made, &who, sizeof who) != sizeof who) return ::close(made), ::close(door), false;
    sockets_[static_cast<std::size_t>(who)] = made;
  }
  ::close(door);
  return true;
}

bool Wire::exchange(const std::vector<Parcel>& sends, const std::vector<Parcel>& receives,
                    const std::atomic<bool>& give_up) {
  std::vector<Flow> out(sockets_.size()), in(sockets_.size());
  for (const Parcel& parcel : sends) out[static_cast<std::size_t>(parcel.peer)].parcels.push_back(parcel);
  for (const Parcel& parcel : receives) in[static_cast<std::size_t>(parcel.peer)].parcels.push_back(parcel);
  while (!give_up) {
    std::vector<pollfd> waiting;
    bool some = false;
    for (std::size_t r = 0; r < sockets_.size(); ++r) {
      if (!out[r].move(sockets_[r], true) || !in[r].move(sockets_[r], false)) {
        while (!give_up) usleep(glance_ms * 1000);  // a kernel whose peer is gone waits forever
        return false;
      }
      some = some || !out[r].finished() || !in[r].finished();
      const int events = (out[r].finished() ? 0 : POLLOUT) | (in[r].finished() || in[r].stuck ? 0 : POLLIN);
      if (events) waiting.push_back({sockets_[r], static_cast<short>(events), 0});
    }
    if (!some) return true;
    poll(waiting.data(), waiting.size(), glance_ms);
  }
  return false;
}

void Wire::close() {
  for (int& socket : sockets_) {
    if (socket >= 0) ::close(socket);
    socket = -1;
  }
}

}  // namespace medley::mock

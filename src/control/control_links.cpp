// The connections of a control thread: connecting, trying the next address, limiting unauthenticated peers, reading and
// writing.
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "bootstrap/socket.hpp"
#include "control/connect.hpp"
#include "control/control.hpp"

namespace medley::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds handshake_limit{3000};  // then the next address is tried
// The other side may have finished the handshake and rely on the link: with 30 ranks per core the handshake takes
// seconds.
constexpr milliseconds incoming_handshake_limit{10'000};
constexpr milliseconds pause_between_rounds{500};  // when no address of a rank answered
constexpr milliseconds pause_without_descriptors{100};
// Few at a time, so that earlier connections are served before more are accepted.
constexpr int accepted_at_once = 16;

void set_tcp_option(const Descriptor& socket, int option, int value) {
  setsockopt(socket.fd(), IPPROTO_TCP, option, &value, sizeof value);
}

/// Idle links send a keep-alive once a second. The detector decides when a peer is lost, so TCP itself gives up much
/// later.
void prepare_link(const Descriptor& socket, milliseconds lost_after) {
  prefer_promptness(socket);
  set_tcp_option(socket, TCP_KEEPIDLE, 1);
  set_tcp_option(socket, TCP_KEEPINTVL, 1);
  const auto limit = std::max<std::int64_t>(4 * lost_after.count(), 60'000);
  set_tcp_option(socket, TCP_USER_TIMEOUT, static_cast<int>(std::min<std::int64_t>(limit, 1'000'000'000)));
}

}  // namespace

Descriptor begin_connect(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(address.c_str(), fmt::format("{}", port).c_str(), &hints, &list) != 0) return {};
  Descriptor socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (socket && ::connect(socket.fd(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS) socket.reset();
  freeaddrinfo(list);
  return socket;
}

void Control::connect_neighbours() {
  for (int distance = 1; distance < size_; distance *= 2) {
    const int after = (rank_ + distance) % size_;
    if (!linked(after)) connect(after, 0);
  }
  for (int r = 0; r < size_; ++r) {
    const Endpoint& other = ranks_[static_cast<std::size_t>(r)];
    const Endpoint& own = ranks_[static_cast<std::size_t>(rank_)];
    // All ranks of a host watch each of its processes: a child of a lost rank may hold its link open.
    if (other.host == own.host && other.pid != own.pid) watch_process(r, other.pid);
  }
}

bool Control::linked(int rank) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& peer) { return peer->link.peer() == rank; });
}

Control::Peer* Control::joined_link(int rank) const {
  for (const auto& peer : peers_) {
    if (peer->link.peer() == rank && peer->link.joined()) return peer.get();
  }
  return nullptr;
}

/// With no address left, the peer stays with its pending messages, and the next round begins after a pause.
void Control::connect(int rank, std::size_t address, const std::string& waiting) {
  const Endpoint& other = ranks_[static_cast<std::size_t>(rank)];
  const bool same_host = other.host == ranks_[static_cast<std::size_t>(rank_)].host;
  Descriptor socket;
  for (; !socket && address <= other.addresses.size(); ++address) {
    // Loopback comes first on the same host and last elsewhere: hosts that are namespaces of one machine may share
    // nothing else.
    const std::string where = same_host == (address == 0)        ? "127.0.0.1"
                              : same_host                        ? other.addresses[address - 1]
                              : address < other.addresses.size() ? other.addresses[address]
                                                                 : "127.0.0.1";
    socket = begin_connect(where, other.port);
  }
  if (socket) prepare_link(socket, limits_.lost_after);
  auto peer = std::make_unique<Peer>(OwnSocket(std::move(socket)), Link::connecting(token_, rank_, size_), false,
                                     address, steady_clock::now(), true);
  peer->link.set_peer(rank);
  peer->link.add_waiting(waiting);
  peers_.push_back(std::move(peer));
}

/// For a connection to the wrong rank, or to no Medley process at all.
void Control::try_next_address(std::size_t index) {
  const int rank = peers_[index]->link.peer();
  // After the last one, start again with the first
  const std::size_t next = peers_[index]->socket.fd() < 0 ? 0 : peers_[index]->address;
  const std::string waiting = peers_[index]->link.take_waiting();
  peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(index));
  if (Peer* made = joined_link(rank)) {  // the other side connected first
    made->link.add_waiting(waiting);
    flush(*made);
  } else if (standing(rank) == Standing::present) {
    connect(rank, next, waiting);
  }
}

Control::Peer* Control::link_to(int rank) {
  if (Peer* made = joined_link(rank)) return made;
  for (const auto& peer : peers_) {
    if (peer->link.peer() == rank) return peer.get();
  }
  if (standing(rank) != Standing::present) return nullptr;
  connect(rank, 0);
  return peers_.back().get();
}

void Control::send_to(int rank, const Message& message) {
  if (rank == everyone) {
    forward({std::string(to_all) + message.kind, stamp(message.body)}, rank_);
  } else if (rank == rank_) {
    if (owner_.on_message) owner_.on_message(rank_, message);
  } else if (Peer* peer = link_to(rank)) {
    peer->link.send(message);
    flush(*peer);
  }
}

void Control::send_all(const std::vector<Gatherings::Outgoing>& messages) {
  for (const auto& item : messages) send_to(item.to, item.message);
}

void Control::accept_some() {
  for (int i = 0; i < accepted_at_once; ++i) {
    Descriptor socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket) {
      // Out of descriptors: the listener would stay readable for ever, so do not poll it for a moment.
      if (errno != EAGAIN && !shed_stranger()) listen_again_ = steady_clock::now() + pause_without_descriptors;
      return;
    }
    const auto strangers =
        std::count_if(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->link.peer() < 0; });
    if (static_cast<std::size_t>(strangers) >= most_strangers) shed_stranger();
    prepare_link(socket, limits_.lost_after);
    peers_.push_back(std::make_unique<Peer>(OwnSocket(std::move(socket)), Link::accepting(token_, size_), true,
                                            std::size_t{0}, steady_clock::now()));
  }
}

/// Closes the oldest unauthenticated connection: a rank authenticates within a round trip.
bool Control::shed_stranger() {
  const auto oldest =
      std::find_if(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->link.peer() < 0; });
  if (oldest == peers_.end()) return false;
  peers_.erase(oldest);
  return true;
}

void Control::flush(Peer& peer) {
  while (peer.connected && !peer.link.outgoing().empty()) {
    const std::string_view out = peer.link.outgoing();
    const ssize_t sent = ::send(peer.socket.fd(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // later, or the read side reports the error
    peer.handed += static_cast<std::uint64_t>(sent);
    peer.link.taken(static_cast<std::size_t>(sent));
  }
}

void Control::serve(std::size_t index, short events) {
  Peer& peer = *peers_[index];
  if (!peer.connected) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(peer.socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0 || (events & (POLLERR | POLLHUP))) return try_next_address(index);
    peer.connected = true;
  }
  char chunk[16384];
  std::vector<Message> messages;
  bool open = true;
  for (;;) {
    const ssize_t got = recv(peer.socket.fd(), chunk, sizeof chunk, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0 || !peer.link.receive({chunk, static_cast<std::size_t>(got)}, messages)) {
      open = false;
      break;
    }
    if (got < static_cast<ssize_t>(sizeof chunk)) break;
  }
  const int from = peer.link.peer();
  if (from >= size_) return drop(index);
  flush(peer);
  if (peer.link.joined()) {
    detector_.linked(from, steady_clock::now());
    detector_.heard(from, steady_clock::now());
  }
  const int file = peer.socket.fd();  // a message may create links, never drop one: this peer stays in place
  for (Message& message : messages) deliver(from, std::move(message));
  if (!open && index < peers_.size() && peers_[index]->socket.fd() == file) drop(index);
}

void Control::drop(std::size_t index) {
  const Peer& peer = *peers_[index];
  const bool joined = peer.link.joined();
  const int rank = peer.link.peer();
  if (!joined && peer.outgoing) return try_next_address(index);
  peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(index));
  if (joined && rank >= 0 && rank < size_ && !joined_link(rank)) {
    detector_.forget(rank);
    lose(rank, "its process ended or its host was cut off");
  }
}

/// Sends heartbeats, and closes connections that did not complete.
void Control::tend_links(Deadline now) {
  for (std::size_t i = peers_.size(); i-- > 0;) {
    Peer& peer = *peers_[i];
    const milliseconds limit = peer.socket.fd() < 0 ? pause_between_rounds
                               : peer.outgoing      ? handshake_limit
                                                    : incoming_handshake_limit;
    if (!peer.link.joined() && now - peer.since > limit) {
      if (peer.outgoing) {
        try_next_address(i);
      } else {
        peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(i));  // an unauthenticated connection
      }
      continue;
    }
    const bool due = peer.link.joined() && peer.link.outgoing().empty();
    if (due && detector_.wants_beat(peer.link.peer(), now)) peer.link.send({"beat", ""});
    flush(peer);
  }
}

}  // namespace medley::control

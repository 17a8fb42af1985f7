#include "control/control.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "bootstrap/host.hpp"
#include "bootstrap/quiet_thread.hpp"
#include "bootstrap/socket.hpp"

namespace medley::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds tick{200};
constexpr milliseconds goodbye_grace{300};    // a goodbye may take a few hops while the process has already ended
constexpr milliseconds handshake_limit{3000};
constexpr milliseconds farewell_limit{1000};  // how long a goodbye may take to leave

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

// Messages to everyone carry who sent them and a number, by which a rank knows that it has seen one.
struct Stamped {
  int origin;
  std::string id;
  std::string body;
};

std::string stamp(int origin, std::uint64_t number, const std::string& body) {
  return fmt::format("{} {} {}", origin, number, body);
}

std::optional<Stamped> unstamp(const std::string& text) {
  int origin = 0, length = 0;
  unsigned long long number = 0;
  if (sscanf(text.c_str(), "%d %llu%n", &origin, &number, &length) != 2) return std::nullopt;
  const auto end = static_cast<std::size_t>(length);
  if (end >= text.size()) return std::nullopt;
  return Stamped{origin, text.substr(0, end), text.substr(end + 1)};
}

}  // namespace

Control::Control(int rank, int size, bool one_host)
    : rank_(rank), size_(size), listener_(listen_on(one_host ? "127.0.0.1" : "", 0, 1)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), standing_(std::make_unique<std::atomic<Standing>[]>(static_cast<std::size_t>(size))) {}

Endpoint Control::endpoint() const {
  return {host_identity(), getpid(), port_of(listener_.descriptor()), own_addresses()};
}

void Control::start(std::vector<Endpoint> ranks, const std::string& token, Listener listener) {
  ranks_ = std::move(ranks);
  token_ = token;
  owner_ = std::move(listener);
  thread_ = start_quiet_thread("medley-control", [this] { run(); });
}

Control::~Control() { stop(); }

void Control::stop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(write(wake_.fd(), &one, sizeof one) == sizeof one);
  thread_.join();
}

void Control::send(int to, Message message) {
  {
    const std::lock_guard lock(mutex_);
    outbox_.push_back({to, std::move(message)});
  }
  const std::uint64_t one = 1;
  static_cast<void>(write(wake_.fd(), &one, sizeof one) == sizeof one);
}

void Control::connect_neighbours() {
  for (int distance = 1; distance < size_; distance *= 2) {
    const int after = (rank_ + distance) % size_;
    if (!linked(after)) connect(after, 0);
  }
  for (int r = 0; r < size_; ++r) {
    const Endpoint& other = ranks_[static_cast<std::size_t>(r)];
    const Endpoint& own = ranks_[static_cast<std::size_t>(rank_)];
    // The whole host watches each of its processes: a link may be held open by what a lost rank left behind.
    if (other.host != own.host || other.pid == own.pid) continue;
    processes_[r] = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(other.pid), 0)));
  }
}

bool Control::linked(int rank) const {
  return std::any_of(peers_.begin(), peers_.end(), [&](const auto& peer) { return peer->link.peer() == rank; });
}

void Control::connect(int rank, std::size_t address, const std::string& waiting) {
  const Endpoint& other = ranks_[static_cast<std::size_t>(rank)];
  const bool same_host = other.host == ranks_[static_cast<std::size_t>(rank_)].host;
  for (;; ++address) {
    // Loopback comes first on one host and last elsewhere: hosts that are namespaces of one machine may share nothing else.
    if (address > other.addresses.size()) return;
    const std::string where = same_host == (address == 0) ? "127.0.0.1"
                              : same_host                 ? other.addresses[address - 1]
                              : address < other.addresses.size() ? other.addresses[address] : "127.0.0.1";
    Descriptor socket = begin_connect(where, other.port);
    if (!socket) continue;
    prefer_promptness(socket);
    auto peer = std::make_unique<Peer>(OwnSocket(std::move(socket)), Link::connecting(token_, rank_, size_), false, address,
                                       steady_clock::now());
    peer->link.set_peer(rank);
    peer->link.add_waiting(waiting);
    peers_.push_back(std::move(peer));
    return;
  }
}

Control::Peer* Control::link_to(int rank) {
  for (const auto& peer : peers_) {
    if (peer->link.peer() == rank) return peer.get();
  }
  if (standing(rank) != Standing::present) return nullptr;
  connect(rank, 0);
  return !peers_.empty() && peers_.back()->link.peer() == rank ? peers_.back().get() : nullptr;
}

void Control::accept_all() {
  for (;;) {
    Descriptor socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    prefer_promptness(socket);
    peers_.push_back(std::make_unique<Peer>(OwnSocket(std::move(socket)), Link::accepting(token_, size_), true,
                                            std::size_t{0}, steady_clock::now()));
  }
}

void Control::flush(Peer& peer) {
  while (peer.connected && !peer.link.outgoing().empty()) {
    const std::string_view out = peer.link.outgoing();
    const ssize_t sent = ::send(peer.socket.fd(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;   // later, or the read side will tell
    peer.link.taken(static_cast<std::size_t>(sent));
  }
}

void Control::serve(std::size_t index, short events) {
  Peer& peer = *peers_[index];
  if (!peer.connected) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(peer.socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0 || (events & (POLLERR | POLLHUP))) {   // nobody there: the next address, if there is one
      const int rank = peer.link.peer();
      const std::size_t next = peer.address + 1;
      const std::string waiting = peer.link.take_waiting();
      peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(index));
      return connect(rank, next, waiting);
    }
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
  for (Message& message : messages) deliver(from, std::move(message));
  if (!open) drop(index);
}

void Control::drop(std::size_t index) {
  const bool joined = peers_[index]->link.joined();
  const int rank = peers_[index]->link.peer();
  peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(index));
  if (joined && rank >= 0 && rank < size_ && !linked(rank)) {
    lose(rank, "its process ended or its host was cut off");
  }
}

void Control::lose(int rank, const std::string& how) {
  if (rank == rank_ || standing(rank) != Standing::present || stop_) return;
  standing_[static_cast<std::size_t>(rank)] = Standing::lost;
  forward({"lost", stamp(rank_, ++counter_, nlohmann::json{{"rank", rank}, {"how", how}}.dump())}, rank_);
  if (owner_.on_lost) owner_.on_lost(rank, how);
}

void Control::forward(const Message& message, int except) {
  for (const auto& peer : peers_) {
    if (peer->link.peer() < 0 || peer->link.peer() == except) continue;
    peer->link.send(message);
    flush(*peer);
  }
}

void Control::deliver(int from, Message message) {
  if (message.kind == "beat") return;
  if (message.kind.starts_with("all/") || message.kind == "lost" || message.kind == "left") {
    const auto stamped = unstamp(message.body);
    if (!stamped || stamped->origin == rank_ || !seen_.insert(message.kind + stamped->id).second) return;
    if (seen_.size() > 100'000) seen_.clear();   // an old one that comes again does no harm
    forward(message, from);
    from = stamped->origin;
    message.body = stamped->body;
  }
  if (message.kind == "left" && from >= 0 && from < size_) {
    if (standing_[static_cast<std::size_t>(from)].exchange(Standing::left) == Standing::present && owner_.on_left) owner_.on_left(from);
    return;
  }
  if (message.kind == "lost") {
    const auto json = nlohmann::json::parse(message.body, nullptr, false);
    if (json.is_discarded() || !json.contains("rank")) return;
    const int rank = json["rank"];
    if (rank < 0 || rank >= size_ || rank == rank_ || standing(rank) != Standing::present) return;
    standing_[static_cast<std::size_t>(rank)] = Standing::lost;
    if (owner_.on_lost) owner_.on_lost(rank, json.value("how", ""));
    return;
  }
  if (message.kind.starts_with("all/")) message.kind.erase(0, 4);
  if (owner_.on_message) owner_.on_message(from, message);
}

void Control::take_outbox() {
  std::uint64_t ignored = 0;
  static_cast<void>(read(wake_.fd(), &ignored, sizeof ignored) == sizeof ignored);
  std::vector<Outgoing> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(outbox_);
  }
  for (Outgoing& item : taken) {
    if (item.to == everyone) {
      forward({"all/" + item.message.kind, stamp(rank_, ++counter_, item.message.body)}, rank_);
    } else if (item.to == rank_) {
      if (owner_.on_message) owner_.on_message(rank_, item.message);
    } else if (Peer* peer = link_to(item.to)) {
      peer->link.send(item.message);
      flush(*peer);
    }
  }
}

void Control::say_goodbye() {
  take_outbox();   // what was said before it
  forward({"left", stamp(rank_, ++counter_, "")}, rank_);
  // Links that are still being made are finished first: whoever knows of this rank must hear that it left.
  const auto unsent = [this] {
    return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
      return peer->link.peer() >= 0 && (!peer->link.joined() || !peer->link.outgoing().empty());
    });
  };
  const auto until = steady_clock::now() + farewell_limit;
  while (unsent() && steady_clock::now() < until) step(milliseconds(10));
  // Closing with unread bytes would reset the connection and take the goodbye with it.
  for (const auto& peer : peers_) shutdown(peer->socket.fd(), SHUT_WR);
}

void Control::run() {
  connect_neighbours();
  auto next_tick = steady_clock::now() + tick;
  while (!stop_) {
    const auto left = std::chrono::ceil<milliseconds>(next_tick - steady_clock::now());
    step(std::clamp(left, milliseconds(0), tick));
    take_outbox();
    watch_processes();
    if (steady_clock::now() >= next_tick) {
      next_tick = steady_clock::now() + tick;
      on_tick();
    }
  }
  say_goodbye();
}

/// Waits for something to do on the links and does it.
void Control::step(milliseconds at_most) {
  std::vector<pollfd> files{{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
  for (const auto& [rank, file] : processes_) files.push_back({file.fd(), POLLIN, 0});   // a closed one is passed over
  const std::size_t first_peer = files.size();
  for (const auto& peer : peers_) {
    const bool writes = !peer->connected || !peer->link.outgoing().empty();
    files.push_back({peer->socket.fd(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
  }
  poll(files.data(), files.size(), static_cast<int>(at_most.count()));
  // From the back, so that dropping one moves none that is still to be served.
  for (std::size_t i = files.size(); i-- > first_peer;) {
    const std::size_t index = i - first_peer;
    if (files[i].revents != 0 && index < peers_.size() && peers_[index]->socket.fd() == files[i].fd) {
      serve(index, files[i].revents);
    }
  }
  if (files[1].revents != 0) accept_all();
}

void Control::on_tick() {
  const Deadline now = steady_clock::now();
  for (std::size_t i = peers_.size(); i-- > 0;) {
    Peer& peer = *peers_[i];
    if (!peer.link.joined() && now - peer.since > handshake_limit) {   // a stranger, or nobody at that address
      peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    if (peer.link.joined() && peer.link.outgoing().empty()) peer.link.send({"beat", ""});
    flush(peer);
  }
  for (auto entry = ended_.begin(); entry != ended_.end();) {
    if (now - entry->second < goodbye_grace) {
      ++entry;
      continue;
    }
    lose(entry->first, "its process ended");
    entry = ended_.erase(entry);
  }
  if (owner_.on_tick) owner_.on_tick();
}

void Control::watch_processes() {
  for (auto entry = processes_.begin(); entry != processes_.end();) {
    pollfd file{entry->second.fd(), POLLIN, 0};
    if (entry->second && poll(&file, 1, 0) == 1) {
      ended_[entry->first] = steady_clock::now();
      entry = processes_.erase(entry);
    } else {
      ++entry;
    }
  }
}

}  // namespace medley::control

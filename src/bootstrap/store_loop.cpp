#include "bootstrap/store_loop.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <medley/error.hpp>

namespace medley {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint64_t listener_id = 0, wake_id = 1;
// Few at a time, so that earlier connections are served before more are accepted.
constexpr int accepted_at_once = 16;
constexpr milliseconds pause_without_descriptors{100};

Descriptor checked(int fd, const char* what) {
  if (fd < 0) throw Error(ErrorKind::system, fmt::format("the store cannot start: {}: {}", what, std::strerror(errno)));
  return Descriptor(fd);
}

}  // namespace

StoreLoop::StoreLoop(const StoreServerOptions& options)
    : options_(options),
      listener_(listen_on(options.host, options.port, options.ports)),
      wake_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {
  if (options_.token.empty()) throw Error(ErrorKind::invalid, "a store without a token would admit anyone");
  watch(listener_.fd(), listener_id, EPOLLIN, EPOLL_CTL_ADD);
  watch(wake_.fd(), wake_id, EPOLLIN, EPOLL_CTL_ADD);
}

void StoreLoop::stop() {
  const std::uint64_t one = 1;
  while (write(wake_.fd(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool StoreLoop::wait_until_empty(milliseconds limit) {
  std::unique_lock lock(mutex_);
  return left_.wait_for(lock, limit, [this] { return admitted_ == 0; });
}

void StoreLoop::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int ready =
        epoll_wait(epoll_.fd(), events.data(), static_cast<int>(events.size()), milliseconds_to_next_timer());
    for (int i = 0; i < ready; ++i) {
      const Id id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == wake_id) return;
      if (id == listener_id) {
        accept_some();
      } else {
        serve(id, events[static_cast<std::size_t>(i)].events);
      }
    }
    drop_late_strangers();
  }
}

int StoreLoop::milliseconds_to_next_timer() const {
  Deadline next = Deadline::max();
  if (!strangers_.empty()) {
    const auto oldest = connections_.find(strangers_.front());
    next = oldest == connections_.end() ? steady_clock::now() : oldest->second.admission_ends;
  }
  if (!listening_) next = std::min(next, listen_again_);
  if (next == Deadline::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(next - steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

void StoreLoop::watch(int fd, Id id, std::uint32_t events, int how) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.fd(), how, fd, &event);
}

void StoreLoop::accept_some() {
  for (int i = 0; i < accepted_at_once; ++i) {
    Descriptor socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      if (same_user(socket)) add_stranger(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) shed_load();
    return;
  }
}

void StoreLoop::add_stranger(Descriptor socket) {
  // A rank authenticates within a round trip, so the connection that has waited longest is least likely to be one.
  if (stranger_count_ >= options_.strangers) shed_load();
  prefer_promptness(socket);
  const Id id = next_id_++;
  watch(socket.fd(), id, EPOLLIN, EPOLL_CTL_ADD);
  StoreSession session(options_.token, static_cast<std::uint32_t>(options_.size));
  const Deadline admission_ends = steady_clock::now() + options_.handshake_limit;
  const auto added = connections_.emplace(id, Connection{std::move(socket), std::move(session), admission_ends}).first;
  strangers_.push_back(id);
  ++stranger_count_;
  added->second.out = added->second.session.greeting();
  if (!flush(id, added->second)) drop(id);
}

// Frees a slot by closing the oldest unauthenticated connection, or stops listening for a moment.
void StoreLoop::shed_load() {
  while (!strangers_.empty()) {
    const Id oldest = strangers_.front();
    strangers_.pop_front();
    const auto found = connections_.find(oldest);
    if (found == connections_.end() || found->second.session.admitted()) continue;
    drop(oldest);
    return;
  }
  listening_ = false;
  listen_again_ = steady_clock::now() + pause_without_descriptors;
  watch(listener_.fd(), listener_id, 0, EPOLL_CTL_MOD);
}

void StoreLoop::drop_late_strangers() {
  const auto now = steady_clock::now();
  while (!strangers_.empty()) {
    const auto oldest = connections_.find(strangers_.front());
    const bool stranger = oldest != connections_.end() && !oldest->second.session.admitted();
    if (stranger && oldest->second.admission_ends > now) break;
    if (stranger) drop(strangers_.front());
    strangers_.pop_front();
  }
  if (!listening_ && now >= listen_again_) {
    listening_ = true;
    watch(listener_.fd(), listener_id, EPOLLIN, EPOLL_CTL_MOD);
  }
}

void StoreLoop::serve(Id id, std::uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;  // dropped earlier in this round
  Connection& connection = found->second;
  bool stays = true;
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    std::vector<wire::Request> requests;
    const bool was_admitted = connection.session.admitted();
    stays = read_from(connection, requests);
    if (!was_admitted && connection.session.admitted()) {
      --stranger_count_;
      count_admitted(+1);
    }
    for (const auto& request : requests) stays = answer(id, connection, request) && stays;
  }
  // Send the reason before dropping, if the socket accepts it at once.
  if (!flush(id, connection) || !stays) drop(id);
}

// One chunk per round: a large value does not delay the others. False when the other end left or must be dropped.
bool StoreLoop::read_from(Connection& connection, std::vector<wire::Request>& requests) {
  const ssize_t got = recv(connection.socket.fd(), chunk_.data(), chunk_.size(), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  return connection.session.receive({chunk_.data(), static_cast<std::size_t>(got)}, requests, connection.out);
}

bool StoreLoop::answer(Id id, Connection& connection, const wire::Request& request) {
  using wire::Status, wire::Verb;
  const auto& key = request.key;
  if (connection.awaited) return false;  // one pending request at a time, as our client does
  switch (request.verb) {
    case Verb::set:
      table_[key] = request.value;
      connection.out += wire::reply(Status::value);
      publish(key);
      break;
    case Verb::get:
    case Verb::try_get: {
      const auto found = table_.find(key);
      if (found != table_.end()) {
        connection.out += wire::reply(Status::value, found->second);
      } else if (request.verb == Verb::try_get) {
        connection.out += wire::reply(Status::absent);
      } else {
        connection.awaited = key;
        waiting_[key].insert(id);
      }
      break;
    }
    case Verb::add:
      try {
        const auto delta = wire::parse_number(request.value);
        if (!delta) throw Error(ErrorKind::invalid, "add needs a number of 8 bytes");
        connection.out += wire::reply(Status::value, wire::number(add_to(table_, key, *delta)));
        publish(key);
      } catch (const Error& error) {
        connection.out += wire::reply(Status::refused, error.what());
      }
      break;
    case Verb::erase:
      table_.erase(key);
      connection.out += wire::reply(Status::value);
      break;
    case Verb::erase_prefix:
      erase_range(table_, key);
      connection.out += wire::reply(Status::value);
      break;
  }
  return true;
}

// Answers every client that waits for `key`.
void StoreLoop::publish(const std::string& key) {
  const auto waiting = waiting_.extract(key);
  if (waiting.empty()) return;
  const std::string reply = wire::reply(wire::Status::value, table_[key]);
  for (const Id id : waiting.mapped()) {
    Connection& connection = connections_.at(id);
    connection.awaited.reset();
    connection.out += reply;
    // Sent in the next round, when the socket is writable: this connection may be dropped only while it is
    // being handled itself.
    connection.stalled = true;
    watch(connection.socket.fd(), id, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
  }
}

// False when the connection broke.
bool StoreLoop::flush(Id id, Connection& connection) {
  std::string& out = connection.out;
  std::size_t& sent = connection.sent;
  while (sent < out.size()) {
    const ssize_t count = send(connection.socket.fd(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      return false;
    }
  }
  const bool stalled = sent < out.size();
  if (!stalled) {
    out.clear();
    sent = 0;
  }
  if (stalled != connection.stalled) {
    connection.stalled = stalled;
    watch(connection.socket.fd(), id, stalled ? EPOLLIN | EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
  }
  return true;
}

void StoreLoop::drop(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  if (connection.awaited) {
    const auto waiting = waiting_.find(*connection.awaited);
    waiting->second.erase(id);
    if (waiting->second.empty()) waiting_.erase(waiting);
  }
  if (connection.session.admitted()) {
    count_admitted(-1);
  } else {
    --stranger_count_;
  }
  connections_.erase(found);
}

void StoreLoop::count_admitted(int change) {
  const std::lock_guard lock(mutex_);
  admitted_ += change;
  if (admitted_ == 0) left_.notify_all();
}

}  // namespace medley

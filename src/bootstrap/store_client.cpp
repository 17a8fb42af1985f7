#include "bootstrap/store_client.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <medley/error.hpp>
#include <thread>
#include <utility>

#include "bootstrap/wire.hpp"

namespace medley {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A store answers within a round trip; this long means that it is stuck or gone.
constexpr milliseconds answer_limit{30'000};
constexpr milliseconds handshake_limit{3'000};
// A refusal may come from the store of an earlier job that is about to end; after this long it is meant for
// us.
constexpr milliseconds refusal_limit{5'000};
// How long a store that was reached before may be unreachable.
constexpr milliseconds reconnect_limit{2'000};

enum class Outcome { joined, nobody, stranger, refused };

struct Attempt {
  Outcome outcome = Outcome::nobody;
  Descriptor socket = {};
  std::string why = {};
};

// Connects to one port and runs the mutual proof of the token.
Attempt try_join(const StoreAddress& address, std::uint16_t port, Deadline deadline) {
  Attempt attempt;
  attempt.socket = connect_to(address.host, port, deadline, attempt.why);
  if (!attempt.socket) return attempt;
  attempt.outcome = Outcome::stranger;
  attempt.why = "what listens there is not the store of this job";
  if (!same_user(attempt.socket)) return attempt;
  const Deadline soon = std::min(deadline, steady_clock::now() + handshake_limit);
  std::string bytes(wire::greeting_bytes, '\0');
  if (!read_all(attempt.socket, bytes.data(), bytes.size(), soon)) return attempt;
  const auto server = wire::parse_greeting(bytes);
  if (!server) return attempt;
  const Nonce client = random_nonce();
  const std::string hello = wire::hello(address.token, *server, client, static_cast<std::uint32_t>(address.rank),
                                        static_cast<std::uint32_t>(address.size));
  bytes.resize(wire::verdict_bytes);
  if (!write_all(attempt.socket, hello.data(), hello.size(), soon)) return attempt;
  if (!read_all(attempt.socket, bytes.data(), bytes.size(), soon)) return attempt;
  const auto answer = wire::parse_verdict(bytes, address.token, *server, client);
  if (!answer) return attempt;
  switch (answer->code) {
    case wire::Verdict::welcome: attempt.outcome = Outcome::joined; break;
    case wire::Verdict::wrong_token:
      attempt.outcome = Outcome::refused;
      attempt.why = "it refused this rank's token; is MEDLEY_TOKEN the same on every rank?";
      break;
    case wire::Verdict::wrong_size:
      throw Error(ErrorKind::mismatch, fmt::format("rank {} counts {} ranks but the job's store counts {}: start every "
                                                   "rank with the same world size",
                                                   address.rank, address.size, answer->size));
  }
  return attempt;
}

std::string describe(const StoreAddress& address) {
  if (address.port == 0) return address.host;
  const std::string last = address.ports > 1 ? fmt::format("-{}", address.port + address.ports - 1) : "";
  return fmt::format("{}:{}{}", address.host, address.port, last);
}

// Tries the ports one after another until one is the store.
std::pair<Descriptor, std::uint16_t> join(const StoreAddress& address, Deadline deadline) {
  std::string why = "nobody listens there";
  milliseconds pause{1};
  auto first_refusal = Deadline::max();
  for (;;) {
    for (int i = 0; i < address.ports; ++i) {
      const auto port = static_cast<std::uint16_t>(address.port + i);
      Attempt attempt = try_join(address, port, deadline);
      if (attempt.outcome == Outcome::joined) return {std::move(attempt.socket), port};
      const auto now = steady_clock::now();
      if (attempt.outcome == Outcome::refused) first_refusal = std::min(first_refusal, now);
      if (attempt.outcome != Outcome::nobody || i == 0) why = attempt.why;
      if (address.ports == 1 && attempt.outcome == Outcome::refused && now - first_refusal > refusal_limit) {
        throw Error(ErrorKind::invalid,
                    fmt::format("rank {} cannot join the job's store at {}: {}", address.rank, describe(address), why));
      }
    }
    if (steady_clock::now() >= deadline) break;
    std::this_thread::sleep_until(std::min(deadline, steady_clock::now() + pause));
    pause = std::min(pause * 2, milliseconds(100));
  }
  throw Error(ErrorKind::timeout, fmt::format("rank {} could not join the job's store at {} before the deadline: {}",
                                              address.rank, describe(address), why));
}

}  // namespace

StoreClient::StoreClient(StoreAddress address, Deadline deadline) : address_(std::move(address)), owner_(getpid()) {
  auto [socket, port] = join(address_, deadline);
  address_.port = port;
  address_.ports = 1;
  own_address_ = own_end(socket);
  idle_.push_back(std::move(socket));
}

Descriptor StoreClient::take_socket(Deadline deadline) {
  if (getpid() != owner_) {
    throw Error(ErrorKind::unavailable,
                "a forked child cannot use the store of its parent: make contexts after fork()");
  }
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Descriptor socket = std::move(idle_.back());
      idle_.pop_back();
      return socket;
    }
  }
  try {
    return join(address_, std::min(deadline, steady_clock::now() + reconnect_limit)).first;
  } catch (const Error& error) {
    if (steady_clock::now() >= deadline) throw;
    throw Error(ErrorKind::rank_lost, fmt::format("the job's store is gone: {}", error.what()));
  }
}

void StoreClient::give_back(Descriptor socket) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(socket));
}

StoreClient::Reply StoreClient::ask(const std::string& frame, const std::string& about, Deadline deadline) {
  Descriptor socket = take_socket(deadline);
  std::uint32_t length = 0;
  std::string body;
  bool good =
      write_all(socket, frame.data(), frame.size(), deadline) && read_all(socket, &length, sizeof length, deadline);
  if (good) {
    body.resize(length);
    good = length > 0 && read_all(socket, body.data(), body.size(), deadline);
  }
  // A socket that failed in the middle of a request is closed, never reused.
  if (!good && errno == ETIMEDOUT) {
    throw Error(ErrorKind::timeout,
                fmt::format("the job's store gave no answer about \"{}\" before the deadline", about));
  }
  if (!good) {
    throw Error(ErrorKind::rank_lost,
                fmt::format("the job's store at {} closed the connection: the process that serves it "
                            "(rank 0 or the launcher) has ended",
                            describe(address_)));
  }
  give_back(std::move(socket));
  const auto status = static_cast<wire::Status>(body[0]);
  body.erase(0, 1);
  if (status == wire::Status::refused) throw Error(ErrorKind::invalid, body);
  return {status == wire::Status::value, std::move(body)};
}

void StoreClient::set(const std::string& key, const std::string& value) {
  ask(wire::request(wire::Verb::set, key, value), key, steady_clock::now() + answer_limit);
}

std::string StoreClient::get(const std::string& key, Deadline deadline) {
  return ask(wire::request(wire::Verb::get, key), key, deadline).value;
}

std::optional<std::string> StoreClient::try_get(const std::string& key) {
  Reply reply = ask(wire::request(wire::Verb::try_get, key), key, steady_clock::now() + answer_limit);
  return reply.present ? std::optional(std::move(reply.value)) : std::nullopt;
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t delta) {
  const auto frame = wire::request(wire::Verb::add, key, wire::number(delta));
  const auto result = wire::parse_number(ask(frame, key, steady_clock::now() + answer_limit).value);
  if (!result) throw Error(ErrorKind::system, fmt::format("the job's store answered add(\"{}\") with no number", key));
  return *result;
}

void StoreClient::erase(const std::string& key) {
  ask(wire::request(wire::Verb::erase, key), key, steady_clock::now() + answer_limit);
}

void StoreClient::erase_prefix(const std::string& prefix) {
  ask(wire::request(wire::Verb::erase_prefix, prefix), prefix, steady_clock::now() + answer_limit);
}

}  // namespace medley

// Messages between control threads: broadcasts, goodbyes, losses.
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "control/control.hpp"

namespace medley::control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds farewell_limit{1000};  // how long sending a goodbye may take
// Broadcasts that are remembered. Then all are forgotten: an old one that arrives again does no harm.
constexpr std::size_t most_seen = 100'000;

// Broadcast messages carry their origin and a number, by which a rank recognises duplicates.
struct Stamped {
  int origin;
  std::string id;
  std::string body;
};

std::optional<Stamped> unstamp(const std::string& text) {
  int origin = 0, length = 0;
  unsigned long long number = 0;
  if (sscanf(text.c_str(), "%d %llu%n", &origin, &number, &length) != 2) return std::nullopt;
  const auto end = static_cast<std::size_t>(length);
  if (end >= text.size()) return std::nullopt;
  return Stamped{origin, text.substr(0, end), text.substr(end + 1)};
}

}  // namespace

std::string Control::stamp(const std::string& body) { return fmt::format("{} {} {}", rank_, ++counter_, body); }

/// False if it was no longer present, or this rank is ending itself.
bool Control::mark_lost(int rank) {
  if (standing(rank) != Standing::present || stop_) return false;
  standing_[static_cast<std::size_t>(rank)] = Standing::lost;
  detector_.forget(rank);
  probes_.erase(rank);
  return true;
}

void Control::lose(int rank, const std::string& how) {
  if (rank == rank_ || !mark_lost(rank)) return;
  // Also to the lost rank, if it can still receive: a rank that was declared lost must not continue as if nothing had
  // happened.
  forward({"lost", stamp(nlohmann::json{{"rank", rank}, {"how", how}}.dump())}, rank_);
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
  if (Gatherings::about(message)) {
    std::vector<Gatherings::Outgoing> out;
    gatherings_.receive(from, message, out);
    return send_all(out);
  }
  const bool for_owners = message.kind.starts_with(to_all);
  if ((for_owners || message.kind == "lost" || message.kind == "left") && !receive_broadcast(from, message)) return;
  if (message.kind == "left" && from >= 0 && from < size_) return receive_left(from);
  if (message.kind == "lost") return receive_lost(from, message);
  if (for_owners) message.kind.erase(0, to_all.size());
  if (owner_.on_message) owner_.on_message(from, message);
}

/// Passes it on, once, and puts its origin and its own body in place. False if it came before.
bool Control::receive_broadcast(int& from, Message& message) {
  auto stamped = unstamp(message.body);
  if (!stamped || stamped->origin == rank_ || !seen_.insert(message.kind + stamped->id).second) return false;
  if (seen_.size() > most_seen) seen_.clear();
  forward(message, from);
  from = stamped->origin;
  message.body = std::move(stamped->body);
  return true;
}

void Control::receive_left(int rank) {
  detector_.forget(rank);
  if (standing_[static_cast<std::size_t>(rank)].exchange(Standing::left) == Standing::present && owner_.on_left)
    owner_.on_left(rank);
}

void Control::receive_lost(int from, const Message& message) {
  const auto json = nlohmann::json::parse(message.body, nullptr, false);
  if (!json.is_object() || !json.contains("rank") || !json["rank"].is_number_integer()) return;
  const int rank = json["rank"];
  if (rank < 0 || rank >= size_) return;
  std::string how = json.value("how", "");
  if (rank == rank_) how = fmt::format("rank {} gave it up: {}", from, how);
  if (mark_lost(rank) && owner_.on_lost) owner_.on_lost(rank, how);
}

void Control::say_goodbye() {
  take_outbox();  // messages sent before the goodbye
  const Message goodbye{"left", stamp("")};
  // Also over links that a peer completes meanwhile: it would take a link that ends without a goodbye for a loss.
  const auto send_goodbyes = [&] {
    for (const auto& peer : peers_) {
      if (peer->link.peer() < 0 || std::exchange(peer->has_goodbye, true)) continue;
      peer->link.send(goodbye);
      flush(*peer);
    }
  };
  // Links being connected are finished first: every rank that knows this one must learn that it left.
  const auto unsent = [this] {
    return std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) {
      return peer->link.peer() >= 0 && peer->socket.fd() >= 0 &&
             (!peer->link.joined() || !peer->link.outgoing().empty());
    });
  };
  const auto until = steady_clock::now() + farewell_limit;
  for (send_goodbyes(); unsent() && steady_clock::now() < until; send_goodbyes()) step(milliseconds(10));
  // Closing with unread bytes would reset the connection and lose the goodbye.
  for (const auto& peer : peers_) shutdown(peer->socket.fd(), SHUT_WR);
}

}  // namespace medley::control

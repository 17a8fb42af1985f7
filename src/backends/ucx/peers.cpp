#include "backends/ucx/peers.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "backends/ucx/worker.hpp"

namespace medley::ucx {
namespace {

// A message to a rank that computes and does not poll leaves only when that rank first connects (TCP); a rank that
// never does must not keep this one from exiting.
constexpr auto longest_farewell = std::chrono::seconds(3);
constexpr auto longest_farewell_to_given_up = std::chrono::milliseconds(100);
constexpr auto longest_close = std::chrono::milliseconds(500);
// A flush to another host is a round trip: UCX asks the peer for an answer. A flush after every message made a
// ping-pong over TCP take 18 µs one way instead of 7, so it waits until messages pause for longer than a round trip.
constexpr auto pause_before_flush = std::chrono::microseconds(100);

}  // namespace

bool Peer::dead() const {
  if (process == 0) return false;
  if (process_file < 0) return kill(process, 0) != 0 && errno == ESRCH;
  pollfd file{process_file, POLLIN, 0};
  return ::poll(&file, 1, 0) == 1;
}

Peers::Peers(Worker& worker, const BackendParams& params)
    : worker_(worker), rank_(params.rank), peers_(static_cast<std::size_t>(params.size)) {
  const std::string& here = params.hosts[static_cast<std::size_t>(rank_)];
  for (std::size_t r = 0; r < peers_.size(); ++r) peers_[r].same_host = params.hosts[r] == here;
}

std::string Peers::introduction() const { return fmt::format("{} {}", getpid(), worker_.address()); }

void Peers::introduce(const std::vector<std::string>& all) {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const std::size_t space = all[r].find(' ');
    const int process = std::stoi(all[r].substr(0, space));
    peers_[r].address = all[r].substr(space + 1);
    if (!peers_[r].same_host || process == getpid()) continue;
    peers_[r].process = process;
    peers_[r].process_file = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  }
}

Endpoint& Peers::connect(Peer& peer) {
  peer.endpoint = std::make_unique<Endpoint>(worker_.handle(), peer.address, !peer.same_host);
  return *peer.endpoint;
}

bool Peers::flushed_in_a_pause() noexcept {
  if (touched_.empty()) return true;
  if (last_touched_ != Deadline{} && std::chrono::steady_clock::now() - last_touched_ < pause_before_flush)
    return false;
  return flushed();
}

bool Peers::flushed() noexcept {
  std::erase_if(touched_, [](Endpoint* endpoint) {
    if (!endpoint->flushed()) return false;
    endpoint->touched_ = false;
    return true;
  });
  return touched_.empty();
}

Peers::~Peers() {
  const Deadline began = std::chrono::steady_clock::now();
  const auto gone = [&](const Peer& peer) {  // nothing can reach it
    return peer.dead() || (peer.given_up && std::chrono::steady_clock::now() - began > longest_farewell_to_given_up);
  };
  worker_.poll_until(
      [&] {
        for (Peer& peer : peers_) {
          if (peer.endpoint && gone(peer)) peer.endpoint->failed_ = true;
        }
        return flushed();
      },
      longest_farewell);
  for (Peer& peer : peers_) {
    if (peer.endpoint && !gone(peer)) peer.endpoint->close();
  }
  worker_.poll_until(
      [&] {
        return std::all_of(peers_.begin(), peers_.end(),
                           [&](const Peer& peer) { return !peer.endpoint || gone(peer) || peer.endpoint->closed(); });
      },
      longest_close);
  // UCX warns of messages that were never received. Dropping them only now means their senders do not see them as
  // delivered.
  if (!worker_.stopped()) worker_.drop_messages(0, 0);
  for (Peer& peer : peers_) {
    if (peer.endpoint && peer.endpoint->connecting()) worker_.leave();
    if (peer.process_file >= 0) ::close(peer.process_file);
  }
}

}  // namespace medley::ucx

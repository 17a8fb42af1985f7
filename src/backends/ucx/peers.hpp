// All ranks of a context as UCX reaches them: their addresses, processes and endpoints, made on first use.
#pragma once

#include <medley/backend.hpp>
#include <memory>
#include <string>
#include <vector>

#include "backends/ucx/endpoint.hpp"

namespace medley::ucx {

class Worker;

struct Peer {
  std::string address;
  int process = 0;        ///< 0 when it is on another host or a thread of this process
  int process_file = -1;  ///< a pidfd
  bool same_host = false;
  bool given_up = false;  ///< a comm failed because of it: it may be stopped
  std::unique_ptr<Endpoint> endpoint;

  /// Whether its process is gone.
  bool dead() const;
};

class Peers {
 public:
  Peers(Worker& worker, const BackendParams& params);
  /// Sends what is unsent, for at most a few seconds, and closes all endpoints.
  ~Peers();

  /// What the other ranks need to reach this one.
  std::string introduction() const;
  bool introduced() const { return !peers_.front().address.empty(); }
  void introduce(const std::vector<std::string>& all);

  Peer& peer(int world_rank) { return peers_[static_cast<std::size_t>(world_rank)]; }
  Endpoint& endpoint(Peer& peer) { return peer.endpoint ? *peer.endpoint : connect(peer); }

  /// Something was sent or acknowledged that may still need polls to leave.
  void touched(Endpoint& endpoint) {
    if (endpoint.watched()) last_touched_ = std::chrono::steady_clock::now();
    if (endpoint.touched_) return;
    endpoint.touched_ = true;
    touched_.push_back(&endpoint);
  }
  /// Whether all of it has left.
  bool flushed() noexcept;
  /// The same for callers that ask repeatedly: for other hosts it does not check before a pause in the messages.
  bool flushed_in_a_pause() noexcept;

 private:
  Endpoint& connect(Peer& peer);
  Worker& worker_;
  int rank_;
  std::vector<Peer> peers_;  ///< by world rank
  std::vector<Endpoint*> touched_;
  Deadline last_touched_{};  ///< endpoint to another host
};

}  // namespace medley::ucx

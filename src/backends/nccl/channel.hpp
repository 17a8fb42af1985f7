// Messages of one pair of ranks in one direction: a two-rank communicator and a stream of their own, since in a shared
// stream a receive would block a send. The first message connects it. Later ones need not wait for the peer, so they
// use the communicator whose calls return when the work is in the stream, and NCCL starts no thread for them
// (Communicator::fast).
#pragma once

#include <chrono>
#include <cstdint>
#include <medley/backend.hpp>
#include <medley/sdk/store_agent.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "backends/nccl/deferred_destroy.hpp"
#include "backends/nccl/track.hpp"

namespace medley::nccl {

/// NCCL has neither tags nor lengths: every message carries a header with both, so that a wrong match is an error and
/// not wrong data.
struct MessageHeader {
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;
  std::uint64_t number = 0;
  std::uint64_t proof = 0;  ///< checksum of the other three: shows when all of them have arrived

  void seal() { proof = mix(); }
  bool sealed() const { return proof == mix(); }

 private:
  std::uint64_t mix() const { return (bytes * 3 ^ tag * 5 ^ number * 7) + 0x9e3779b97f4a7c15u; }
};

class Channel {
 public:
  /// `sends`: this rank sends, `peer` receives.
  Channel(const CommParams& params, StoreAgent& store_agent, int device, std::shared_ptr<cuda::DeviceClock> clock,
          int peer, bool sends);
  /// Its communicator's destruction is deferred and its pinned memory kept: freeing either would wait for every running
  /// kernel.
  ~Channel() { retire(std::move(comm_), device_); }

  /// Progresses the connection; true once messages can be launched. Throws what went wrong.
  bool connected();
  /// Whether NCCL takes another message without waiting for an earlier one.
  bool has_room() const { return track_.outstanding() < most_outstanding; }
  /// Of a message and its header, at most: what has_room() counts.
  static constexpr std::size_t pieces(std::uint64_t bytes) { return 1 + (bytes <= one_piece ? 1 : most_pieces); }
  /// Enqueues one message and its header; false if NCCL continues in the background, which it does with the first
  /// message only.
  bool launch(const Call& call, MessageHeader* header);
  bool idle() { return comm_->idle(); }
  void look_for_errors();
  Track& track() { return track_; }
  /// Fails all further messages, for this reason.
  void break_off(const Error& why) noexcept;
  bool poll_abort() const noexcept { return !comm_ || comm_->poll_abort(); }

  /// Pinned memory for one header.
  MessageHeader* take_header();
  void give_back(MessageHeader* header) noexcept { headers_.push_back(header); }
  std::uint64_t next_number() { return ++messages_; }

 private:
  /// NCCL hands up to 32 pieces of a message to its network thread, through a list of 2,048 entries, and waits when the
  /// list is full. It divides messages from some 16 KiB on; none is divided below 1 KiB, whatever the user sets.
  static constexpr std::size_t most_pieces = 32, one_piece = 1024, most_outstanding = 1024;
  StoreAgent& store_agent_;
  std::shared_ptr<Store> store_;
  StoreAgent::TicketRef looked_;  ///< for the peer's NCCL id
  std::string key_;
  const int device_;
  int peer_;
  bool sends_;
  std::optional<ncclUniqueId> id_;
  std::chrono::steady_clock::time_point next_look_{};
  std::unique_ptr<Communicator> comm_;
  bool splitting_ = false;  ///< fast() is being made
  bool connected_ = false;
  bool pair_connected_ = false;  ///< by the first message
  std::optional<Error> broken_;
  Track track_;
  std::vector<MessageHeader*> headers_;
  std::uint64_t messages_ = 0;
};

}  // namespace medley::nccl

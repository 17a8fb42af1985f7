// Sends and receives of one comm over its sockets. Nothing here waits: progress() moves whatever can move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <medley/backend.hpp>
#include <string>
#include <vector>

#include "connect.hpp"

namespace socket_backend {

/// Precedes the bytes of a message.
struct Header {
  std::int64_t bytes = 0;
  std::int32_t tag = 0;
  std::int32_t unused = 0;
};

class SocketLane;

class SendTransfer final : public medley::Transfer {
 public:
  SendTransfer(SocketLane& lane, const medley::Call& call);
  medley::Poll poll() override;
  std::vector<int> awaited() const override { return {to_}; }
  void release() noexcept override;

 private:
  friend class SocketLane;
  SocketLane& lane_;
  int to_;
  Header header_;
  const std::byte* data_;
  std::size_t sent_ = 0;  ///< of header and data together
  bool done_ = false;
};

class RecvTransfer final : public medley::Transfer {
 public:
  RecvTransfer(SocketLane& lane, const medley::Call& call);
  medley::Poll poll() override;
  std::vector<int> awaited() const override { return from_ < 0 ? std::vector<int>{} : std::vector<int>{from_}; }
  int source() const override { return from_; }
  std::int64_t received() const override { return arrived_; }
  void release() noexcept override;

 private:
  friend class SocketLane;
  bool matches(int from, int tag) const { return tag == tag_ && (from_ < 0 || from == from_); }
  SocketLane& lane_;
  int from_;
  int tag_;
  std::byte* data_;
  std::int64_t capacity_;
  std::int64_t arrived_ = -1;  ///< bytes of the message that matched
  std::int64_t too_long_ = 0;
  bool done_ = false;
};

class SocketLane final : public medley::Lane {
 public:
  explicit SocketLane(const medley::CommParams& params);
  medley::Transfer* start(const medley::Call& call) override;
  void progress() override;
  void check() override;
  void abort(const medley::Error& why) noexcept override;

 private:
  friend class SendTransfer;
  friend class RecvTransfer;
  /// An unexpected message: it arrived before its receive.
  struct Early {
    int from;
    int tag;
    std::vector<std::byte> data;
    bool whole;
  };
  /// Both directions of a pair: pending sends, and the message being read.
  struct Peer {
    Socket stream;
    std::deque<SendTransfer*> leaving;
    Header header;
    std::size_t read = 0;          ///< of header and data together
    RecvTransfer* into = nullptr;  ///< destination of the current message's data: a receive,
    Early* early = nullptr;        ///< or the list of unexpected messages, or nowhere
    bool gone = false;             ///< it sends nothing more
    bool deaf = false;             ///< it accepts nothing more
  };
  void write_to(Peer& peer);
  void read_from(int rank);
  void choose_place(int rank, Peer& peer);
  std::byte* place(Peer& peer, std::size_t& room);
  void finish_message(Peer& peer);
  void to_self(SendTransfer& send);
  void hand_over(Early& early, RecvTransfer& recv);

  int rank_;
  std::vector<Peer> peers_;
  std::list<RecvTransfer*> posted_;  ///< unmatched, in order
  std::list<Early> early_;           ///< unmatched, in order of arrival
  std::vector<std::byte> discard_;
  bool moved_ = false;
};

}  // namespace socket_backend

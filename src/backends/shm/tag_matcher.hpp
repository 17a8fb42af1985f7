// Sends and receives of one comm: tag matching by (source, tag) in order, eager for small messages, rendezvous for large.
// Independent of the comm's collectives: neither ever waits for the other.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <medley/backend.hpp>
#include <medley/sdk/intrusive_list.hpp>
#include <medley/sdk/recycled.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "backends/shm/pipe.hpp"

namespace medley::shm {

/// Messages up to here are eager. Beyond it, saving a copy is worth the rendezvous handshake (RTS, direct read, FIN).
inline constexpr std::size_t eager_limit = std::size_t{16} << 10;

class HostPeers;
class TagMatcher;

class SendTransfer final : public Transfer, public Recycled<SendTransfer> {
 public:
  SendTransfer(TagMatcher& matcher, const Call& call);
  Poll poll() override;
  std::vector<int> awaited() const override { return {to_}; }
  void release() noexcept override;

 private:
  friend class TagMatcher;
  enum class State : std::uint8_t { queued, rts_sent, cts_received, done };
  TagMatcher& matcher_;
  State state_ = State::queued;
  int to_;
  int tag_;
  std::uint64_t id_;
  const std::byte* data_;
  std::size_t bytes_;
  std::size_t sent_ = 0;
  ListLinks<SendTransfer> links_;
};

class RecvTransfer final : public Transfer, public Recycled<RecvTransfer> {
 public:
  RecvTransfer(TagMatcher& matcher, const Call& call);
  Poll poll() override;
  bool poll_when_ready(PollList& list, Polled& owner) override {
    if (state_ != State::posted) return false;
    list_ = &list;
    owner_ = &owner;
    return true;
  }
  std::vector<int> awaited() const override;
  int source() const override { return from_; }
  std::int64_t received() const override { return arrived_; }
  void release() noexcept override;

 private:
  friend class TagMatcher;
  enum class State : std::uint8_t { posted, reading, answering, streaming, done };
  bool matches(int from, int tag) const { return tag == tag_ && (from_ < 0 || from == from_); }
  std::byte* take_eager(int from, std::size_t bytes);
  void take_rts(int from, const LongMessage& rts);
  void read(std::size_t bytes);
  void matched() {
    if (owner_) list_->push_back(*std::exchange(owner_, nullptr));
  }
  TagMatcher& matcher_;
  State state_ = State::posted;
  int from_;
  int tag_;
  std::byte* data_;
  std::size_t capacity_;
  std::int64_t arrived_ = -1;     ///< bytes of the message that matched
  LongMessage rts_{};
  std::size_t done_ = 0;
  std::size_t seen_ = 0;          ///< value of done_ at the last poll
  std::uint64_t too_long_ = 0;    ///< bytes of a message that did not fit
  ListLinks<RecvTransfer> links_;
  PollList* list_ = nullptr;
  Polled* owner_ = nullptr;       ///< to poll it once its message is there
};

/// An unexpected message, which came before its receive. Small ones are stored inline, so that there are no allocations in the
/// steady state.
struct Unexpected final : public Recycled<Unexpected> {
  Unexpected(int sender, const Cell& cell);
  /// Where the bytes of an eager message are.
  std::byte* bytes() { return large ? large.get() : small.data(); }

  int from;
  int tag;
  bool eager;
  std::size_t length;   ///< of an eager message
  LongMessage rts{};  ///< of a rendezvous message
  std::array<std::byte, 64> small;
  std::unique_ptr<std::byte[]> large;
  ListLinks<Unexpected> links;
};

class TagMatcher {
 public:
  TagMatcher(const SegmentView& view, int rank, const HostPeers& host_peers, const std::vector<int>& members,
       bool direct_reads);
  ~TagMatcher() { stop(); }
  /// Null for an eager send that has left. A receive whose message has arrived completes at its first poll.
  Transfer* start(const Call& call);
  /// Receives what has arrived. Called while a send or receive of this comm is pending.
  void progress();
  /// Whether a pending operation can only be completed by `rank`; a receive from any source is lost with the last sender.
  bool awaits(int rank, const std::function<bool(int)>& gone) const;
  bool idle() const { return posted_.empty() && sends_.empty() && reading_.empty(); }
  /// Drops everything; afterwards the transfers are only released.
  void stop() noexcept;

 private:
  friend class SendTransfer;
  friend class RecvTransfer;
  Transfer* start_send(const Call& call);
  Transfer* start_recv(const Call& call);
  void send_queued(int to);
  bool take_unexpected(RecvTransfer& recv);
  void take_in(int from);
  void arrived(int from, const Cell& cell, Pipe& pipe);
  void message_arrived(int from, const Cell& cell, Pipe& pipe);
  void part_arrived(int from, const Cell& cell, Pipe& pipe);
  bool is_eager(int to, std::size_t bytes) const;
  void wake(int rank) const;
  bool answer(int to, FrameKind kind, std::uint64_t id);
  SendTransfer* find_send(std::uint64_t id);

  const SegmentView& view_;
  int rank_;
  const HostPeers& host_peers_;
  const std::vector<int>& members_;
  bool direct_reads_;
  std::uint64_t next_id_ = 1;
  std::vector<Pipe> outgoing_, incoming_;
  std::vector<std::deque<SendTransfer*>> queued_;  ///< per peer: sends that wait for space, in order
  using SendList = IntrusiveList<SendTransfer, &SendTransfer::links_>;
  using RecvList = IntrusiveList<RecvTransfer, &RecvTransfer::links_>;
  SendList sends_;                                  ///< not released, in order of issue
  RecvList posted_;                                 ///< receives without a message yet, in order
  RecvList reading_;                                ///< receives with a rendezvous message
  using UnexpectedList = IntrusiveList<Unexpected, &Unexpected::links>;
  UnexpectedList unexpected_;  ///< messages without a receive yet, in order of arrival; owned
};

}  // namespace medley::shm

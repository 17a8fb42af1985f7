// Sends and receives of one comm: tag matching by (source, tag) in order, eager for small messages, rendezvous for
// large. Independent of the comm's collectives: neither ever waits for the other.
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

#include "backends/shm/host_peers.hpp"
#include "backends/shm/pipe.hpp"

namespace medley::shm {

/// Messages up to here are eager. Beyond it, saving a copy is worth the rendezvous handshake (RTS, direct read, FIN).
inline constexpr std::size_t eager_limit = std::size_t{16} << 10;

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

/// Its matcher keeps it for the next receive: under the engine's lock, so without a look for the thread's own list.
class RecvTransfer final : public Transfer {
 public:
  explicit RecvTransfer(TagMatcher& matcher) : matcher_(matcher) {}
  void begin(const Call& call);
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
  void matched(bool whole) {
    if (!owner_) return;
    owner_->done = whole;
    list_->push_back(*std::exchange(owner_, nullptr));
  }
  TagMatcher& matcher_;
  State state_ = State::posted;
  int from_ = 0;
  int tag_ = 0;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::int64_t arrived_ = -1;  ///< bytes of the message that matched
  LongMessage rts_{};
  std::size_t done_ = 0;
  std::size_t seen_ = 0;        ///< value of done_ at the last poll
  std::uint64_t too_long_ = 0;  ///< bytes of a message that did not fit
  ListLinks<RecvTransfer> links_;
  PollList* list_ = nullptr;
  Polled* owner_ = nullptr;  ///< to poll it once its message is there
};

/// An unexpected message, which came before its receive. Small ones are stored inline, so that there are no allocations
/// in the steady state.
struct Unexpected final : public Recycled<Unexpected> {
  Unexpected(int sender, const Cell& cell);
  /// Where the bytes of an eager message are.
  std::byte* bytes() { return large ? large.get() : small.data(); }

  int from;
  int tag;
  bool eager;
  std::size_t length;  ///< of an eager message
  LongMessage rts{};   ///< of a rendezvous message
  std::array<std::byte, 64> small;
  std::unique_ptr<std::byte[]> large;
  ListLinks<Unexpected> links;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t most_spare = 0;  // otherwise sanitizers would miss uses after free
#else
inline constexpr std::size_t most_spare = 128;
#endif

class TagMatcher {
 public:
  TagMatcher(const SegmentView& view, int rank, const HostPeers& host_peers, const std::vector<int>& members,
             bool direct_reads);
  ~TagMatcher();
  /// Whether an eager send has left.
  bool send_now(int to, int tag, const void* data, std::size_t bytes) {
    const auto peer = static_cast<std::size_t>(to);
    // It must not overtake messages that wait for space.
    if (!queued_[peer].empty() || !is_eager(bytes) || !outgoing_[peer].write_eager(tag, data, bytes)) return false;
    wake(to);
    return true;
  }
  /// Null for an eager send that has left. A receive whose message has arrived completes at its first poll.
  Transfer* start(const Call& call);
  /// Receives what has arrived. Called while a send or receive of this comm is pending.
  void progress();
  /// Whether a pending operation can only be completed by `rank`; a receive from any source is lost with the last
  /// sender.
  bool awaits(int rank, const std::function<bool(int)>& gone) const;
  bool idle() const { return posted_.empty() && sends_.empty() && reading_.empty(); }
  /// Drops everything; afterwards the transfers are only released.
  void stop() noexcept;

 private:
  friend class SendTransfer;
  friend class RecvTransfer;
  Transfer* start_send(const Call& call);
  Transfer* start_recv(const Call& call);
  RecvTransfer& new_recv() {
    if (!spare_) return *new RecvTransfer(*this);
    --spares_;
    return *std::exchange(spare_, std::exchange(spare_->links_.next, nullptr));
  }
  void recycle(RecvTransfer& recv) noexcept {
    if (spares_ == most_spare) [[unlikely]]
      return delete &recv;
    ++spares_;
    recv.links_.next = std::exchange(spare_, &recv);
  }
  void send_queued(int to);
  bool take_unexpected(RecvTransfer& recv);
  void take_in(int from);
  bool take_eager(int from, const Cell& cell, Pipe& pipe);
  void arrived(int from, const Cell& cell, Pipe& pipe);
  RecvTransfer* match(int from, int tag);
  void message_arrived(int from, const Cell& cell, Pipe& pipe);
  void part_arrived(int from, const Cell& cell, Pipe& pipe);
  bool is_eager(std::size_t bytes) const { return bytes <= eager_most_; }
  void wake(int rank) const { host_peers_.wake(std::span(members_).subspan(static_cast<std::size_t>(rank), 1)); }
  bool answer(int to, FrameKind kind, std::uint64_t id);
  SendTransfer* find_send(std::uint64_t id);

  const SegmentView& view_;
  int rank_;
  const HostPeers& host_peers_;
  const std::vector<int>& members_;
  bool direct_reads_;
  std::size_t eager_most_;  ///< rings of large comms are small, and an eager message takes at most half of one
  std::uint64_t next_id_ = 1;
  std::vector<Pipe> outgoing_, incoming_;
  std::vector<std::deque<SendTransfer*>> queued_;  ///< per peer: sends that wait for space, in order
  using SendList = IntrusiveList<SendTransfer, &SendTransfer::links_>;
  using RecvList = IntrusiveList<RecvTransfer, &RecvTransfer::links_>;
  SendList sends_;    ///< not released, in order of issue
  RecvList posted_;   ///< receives without a message yet, in order
  RecvList reading_;  ///< receives with a rendezvous message
  using UnexpectedList = IntrusiveList<Unexpected, &Unexpected::links>;
  RecvTransfer* spare_ = nullptr;  ///< released receives, for the next ones; linked by `links_.next`
  std::size_t spares_ = 0;
  UnexpectedList unexpected_;  ///< messages without a receive yet, in order of arrival; owned
};

}  // namespace medley::shm

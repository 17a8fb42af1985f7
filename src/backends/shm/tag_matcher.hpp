// Sends and receives of one comm: matching by (source, tag) in order, eager for small messages, by offer for large.
// Independent of the comm's collectives: neither ever waits for the other.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <medley/backend.hpp>
#include <medley/sdk/intrusive_list.hpp>
#include <vector>

#include "backends/shm/pipe.hpp"

namespace medley::shm {

class HostPeers;
class TagMatcher;

class SendTransfer final : public Transfer {
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

class RecvTransfer final : public Transfer {
 public:
  RecvTransfer(TagMatcher& matcher, const Call& call);
  Poll poll() override;
  std::vector<int> awaited() const override;
  int source() const override { return from_; }
  std::int64_t received() const override { return arrived_; }
  void release() noexcept override;

 private:
  friend class TagMatcher;
  enum class State : std::uint8_t { posted, reading, answering, streaming, done };
  bool matches(int from, int tag) const { return tag == tag_ && (from_ < 0 || from == from_); }
  void take(const std::byte* data, std::size_t bytes);
  void take_rts(int from, const Frame& frame);
  void read(std::size_t bytes);
  TagMatcher& matcher_;
  State state_ = State::posted;
  int from_;
  int tag_;
  std::byte* data_;
  std::size_t capacity_;
  std::int64_t arrived_ = -1;     ///< bytes of the message that matched
  Frame rts_{};
  std::size_t done_ = 0;
  std::size_t seen_ = 0;          ///< of done_, by the last poll
  std::uint64_t too_long_ = 0;    ///< bytes of a message that did not fit
  ListLinks<RecvTransfer> links_;
};

class TagMatcher {
 public:
  TagMatcher(const SegmentView& view, int rank, const HostPeers& host_peers, const std::vector<int>& members,
       bool direct_reads);
  Transfer* start(const Call& call);
  /// Takes in what has arrived. Called while a send or receive of this comm is pending.
  void progress();
  /// Whether something pending can only be completed by `rank`; one from any source is lost with the last sender.
  bool awaits(int rank, const std::function<bool(int)>& gone) const;
  bool idle() const { return posted_.empty() && sends_.empty() && reading_.empty(); }
  /// Forgets everything; the transfers are only released afterwards.
  void stop() noexcept;

 private:
  friend class SendTransfer;
  friend class RecvTransfer;
  struct Unexpected {
    int from;
    Frame frame;
    std::vector<std::byte> data;
  };
  void take_in(int from);
  void arrived(int from, const Frame& frame, Pipe& pipe);
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
  std::vector<std::deque<SendTransfer*>> queued_;   ///< per peer: those that wait for room, in order
  using SendList = IntrusiveList<SendTransfer, &SendTransfer::links_>;
  using RecvList = IntrusiveList<RecvTransfer, &RecvTransfer::links_>;
  SendList sends_;                                  ///< not released, in order of issue
  RecvList posted_;                                 ///< without a message yet, in order
  RecvList reading_;                                ///< with an offered message
  std::list<Unexpected> unexpected_;                ///< without a receive yet, in order of arrival
};

}  // namespace medley::shm

// The two ends of a message: sender and receiver.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <medley/sdk/memory_barrier.hpp>
#include <utility>

#include "backends/shm/direct_read.hpp"
#include "backends/shm/host_peers.hpp"
#include "backends/shm/tag_matcher.hpp"

namespace medley::shm {
namespace {

std::size_t bytes_of(const Call& call, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(call.dtype);
}

}  // namespace

SendTransfer::SendTransfer(TagMatcher& matcher, const Call& call)
    : matcher_(matcher),
      to_(call.root),
      tag_(call.tag),
      id_(matcher.next_id_++),
      data_(static_cast<const std::byte*>(call.in)),
      bytes_(bytes_of(call, call.in_count)) {}

Poll SendTransfer::poll() {
  Pipe& pipe = matcher_.outgoing_[static_cast<std::size_t>(to_)];
  auto& queue = matcher_.queued_[static_cast<std::size_t>(to_)];
  if (state_ == State::queued && queue.front() == this) {  // messages to one peer leave in order
    const bool eager = matcher_.is_eager(bytes_);
    const bool written = eager
                             ? pipe.write_eager(tag_, data_, bytes_)
                             : pipe.write(FrameKind::rts, tag_, {id_, bytes_, reinterpret_cast<std::uint64_t>(data_)});
    if (!written) return Poll::waiting;
    queue.pop_front();
    state_ = eager ? State::done : State::rts_sent;
    matcher_.wake(to_);
  } else if (state_ == State::cts_received) {
    const std::size_t before = sent_;
    while (sent_ < bytes_) {
      const std::size_t now = std::min(pipe.space(), bytes_ - sent_);
      if (now == 0 || !pipe.write(FrameKind::data, tag_, {id_, bytes_, sent_}, data_ + sent_, now)) break;
      sent_ += now;
      matcher_.wake(to_);
    }
    if (sent_ == bytes_) {
      state_ = State::done;
    } else if (sent_ > before) {
      return Poll::moved;
    }
  }
  return state_ == State::done ? Poll::complete : Poll::waiting;
}

void SendTransfer::release() noexcept {
  if (TagMatcher::SendList::contains(*this)) matcher_.sends_.erase(*this);  // not after TagMatcher::stop()
  if (state_ == State::queued) std::erase(matcher_.queued_[static_cast<std::size_t>(to_)], this);
  delete this;
}

void RecvTransfer::begin(const Call& call) {
  state_ = State::posted;
  from_ = call.root;
  tag_ = call.tag;
  data_ = static_cast<std::byte*>(call.out);
  capacity_ = bytes_of(call, call.out_count);
  arrived_ = -1;
  done_ = seen_ = 0;
  too_long_ = 0;
  owner_ = nullptr;
}

/// Where the message's bytes go; null where they do not fit.
std::byte* RecvTransfer::take_eager(int from, std::size_t bytes) {
  from_ = from;
  arrived_ = static_cast<std::int64_t>(bytes);
  state_ = State::done;
  if (bytes > capacity_) [[unlikely]]
    too_long_ = bytes;
  matched(!too_long_);
  return too_long_ ? nullptr : data_;
}

void RecvTransfer::take_rts(int from, const LongMessage& rts) {
  from_ = from;
  rts_ = rts;
  arrived_ = static_cast<std::int64_t>(rts.bytes);
  if (rts.bytes > capacity_) too_long_ = rts.bytes;
  const bool direct = matcher_.direct_reads_ || from == matcher_.rank_;
  if (too_long_ || !direct) {
    // A message that does not fit is acknowledged as received, so that its sender completes
    state_ = State::answering;
  } else {
    state_ = State::reading;
  }
  matcher_.reading_.push_back(*this);
  matched(false);
}

/// Reads the next part of a rendezvous message from the sender's memory.
void RecvTransfer::read(std::size_t bytes) {
  std::byte* to = data_ + done_;
  const std::uint64_t where = rts_.where + done_;
  if (from_ == matcher_.rank_) {  // its own memory, also where direct reads of others are disabled
    std::memmove(to, reinterpret_cast<const std::byte*>(where), bytes);
    return;
  }
  try {
    matcher_.host_peers_.read(to, matcher_.members_[static_cast<std::size_t>(from_)], where, bytes, from_);
  } catch (const Error&) {
    matcher_.view_.throw_if_aborted();  // a sender that aborted may have freed its memory
    throw;
  }
}

Poll RecvTransfer::poll() {
  if (state_ == State::reading) {
    const std::size_t now = std::min<std::size_t>(progress_quantum, rts_.bytes - done_);
    // This rank has abandoned its send
    if (from_ == matcher_.rank_ && !matcher_.find_send(rts_.id)) return Poll::waiting;
    read(now);
    read_barrier();  // the data first, then whether it still belonged to the sender; pairs with ShmLane::abort()
    if (matcher_.view_.aborted()) return Poll::waiting;  // or changed it; the lane's check() says why it failed
    done_ += now;
    if (done_ < rts_.bytes) return Poll::moved;
    state_ = State::answering;
  }
  if (state_ == State::answering) {
    const bool complete = done_ == rts_.bytes || too_long_;
    if (!matcher_.answer(from_, complete ? FrameKind::fin : FrameKind::cts, rts_.id)) return Poll::waiting;
    state_ = complete ? State::done : State::streaming;
    if (complete) matcher_.reading_.erase(*this);
  }
  if (state_ != State::done) return std::exchange(seen_, done_) < done_ ? Poll::moved : Poll::waiting;
  if (too_long_) {
    throw Error(ErrorKind::mismatch,
                fmt::format("rank {} sent {} bytes with tag {} but the receive has room for {}", from_, too_long_, tag_,
                            capacity_),
                {.ranks = {from_}});
  }
  return Poll::complete;
}

std::vector<int> RecvTransfer::awaited() const { return from_ < 0 ? std::vector<int>{} : std::vector<int>{from_}; }

void RecvTransfer::release() noexcept {
  if (TagMatcher::RecvList::contains(*this))
    (state_ == State::posted ? matcher_.posted_ : matcher_.reading_).erase(*this);
  matcher_.recycle(*this);
}

}  // namespace medley::shm

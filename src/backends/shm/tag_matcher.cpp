#include "backends/shm/tag_matcher.hpp"

#include <algorithm>
#include <medley/options.hpp>

#include "backends/shm/host_peers.hpp"

namespace medley::shm {

TagMatcher::TagMatcher(const SegmentView& view, int rank, const HostPeers& host_peers, const std::vector<int>& members,
           bool direct_reads)
    : view_(view), rank_(rank), host_peers_(host_peers), members_(members), direct_reads_(direct_reads),
      queued_(members.size()) {
  for (int r = 0; r < static_cast<int>(members.size()); ++r) {
    outgoing_.emplace_back(view_, rank_, r);
    incoming_.emplace_back(view_, r, rank_);
  }
}

void TagMatcher::wake(int rank) const {
  const int member[] = {members_[static_cast<std::size_t>(rank)]};
  host_peers_.wake(member);
}

Transfer* TagMatcher::start(const Call& call) {
  if (call.op == Op::send) {
    auto* send = new SendTransfer(*this, call);
    sends_.push_back(*send);
    queued_[static_cast<std::size_t>(call.root)].push_back(send);
    send->poll();
    return send;
  }
  auto* recv = new RecvTransfer(*this, call);
  const auto waiting = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Unexpected& message) {
    return recv->matches(message.from, message.frame.tag);
  });
  if (waiting == unexpected_.end()) {
    posted_.push_back(*recv);
    return recv;
  }
  if (waiting->frame.kind == FrameKind::rts) {
    recv->take_rts(waiting->from, waiting->frame);
  } else {
    recv->from_ = waiting->from;
    recv->take(waiting->data.data(), waiting->data.size());
  }
  unexpected_.erase(waiting);
  return recv;
}

void TagMatcher::progress() {
  if (idle()) return;
  for (int r = 0; r < static_cast<int>(incoming_.size()); ++r) take_in(r);
}

void TagMatcher::take_in(int from) {
  Pipe& pipe = incoming_[static_cast<std::size_t>(from)];
  bool moved = false;
  while (const auto frame = pipe.front()) {
    arrived(from, *frame, pipe);
    moved = true;
  }
  if (moved) wake(from);   // there is room in the pipe again
}

void TagMatcher::arrived(int from, const Frame& frame, Pipe& pipe) {
  if (frame.kind == FrameKind::eager || frame.kind == FrameKind::rts) {
    const auto match = std::find_if(posted_.begin(), posted_.end(),
                                    [&](RecvTransfer& posted) { return posted.matches(from, frame.tag); });
    if (match == posted_.end()) {
      unexpected_.push_back({from, frame, {}});
      if (frame.kind == FrameKind::eager) unexpected_.back().data.resize(frame.bytes);
      pipe.pop(frame, unexpected_.back().data.data());
      return;
    }
    RecvTransfer* recv = &*match;
    posted_.erase(*recv);
    if (frame.kind == FrameKind::rts) {
      pipe.pop(frame, nullptr);
      recv->take_rts(from, frame);
      return;
    }
    recv->from_ = from;
    recv->arrived_ = static_cast<std::int64_t>(frame.bytes);
    if (frame.bytes <= recv->capacity_) {
      pipe.pop(frame, recv->data_);
    } else {
      recv->too_long_ = frame.bytes;
      pipe.pop(frame, nullptr);
    }
    recv->state_ = RecvTransfer::State::done;
    return;
  }
  if (frame.kind == FrameKind::data) {
    const auto match = std::find_if(reading_.begin(), reading_.end(), [&](RecvTransfer& reading) {
      return reading.from_ == from && reading.rts_.id == frame.id;
    });
    if (match == reading_.end()) return pipe.pop(frame, nullptr);
    RecvTransfer* recv = &*match;
    pipe.pop(frame, recv->too_long_ ? nullptr : recv->data_ + frame.where);
    recv->done_ += frame.bytes;
    if (recv->done_ == recv->rts_.bytes) {
      recv->state_ = RecvTransfer::State::done;
      reading_.erase(*recv);
    }
    return;
  }
  pipe.pop(frame, nullptr);
  if (SendTransfer* send = find_send(frame.id)) {
    send->state_ = frame.kind == FrameKind::fin ? SendTransfer::State::done : SendTransfer::State::cts_received;
  }
}

bool TagMatcher::awaits(int rank, const std::function<bool(int)>& gone) const {
  bool nobody_left = true;
  for (int r = 0; r < static_cast<int>(members_.size()); ++r) nobody_left = nobody_left && (r == rank_ || gone(r));
  const auto wants = [&](const RecvTransfer& recv) { return recv.from_ == rank || (recv.from_ < 0 && nobody_left); };
  return std::any_of(posted_.begin(), posted_.end(), wants) || std::any_of(reading_.begin(), reading_.end(), wants) ||
         std::any_of(sends_.begin(), sends_.end(), [&](const SendTransfer& send) { return send.to_ == rank; });
}

SendTransfer* TagMatcher::find_send(std::uint64_t id) {
  const auto found = std::find_if(sends_.begin(), sends_.end(), [&](SendTransfer& send) { return send.id_ == id; });
  return found == sends_.end() ? nullptr : &*found;
}

bool TagMatcher::answer(int to, FrameKind kind, std::uint64_t id) {
  const Frame frame{kind, 0, id, 0, 0};
  if (!outgoing_[static_cast<std::size_t>(to)].write(frame, nullptr, 0)) return false;
  wake(to);
  return true;
}

void TagMatcher::stop() noexcept {
  sends_.clear();
  posted_.clear();
  reading_.clear();
  unexpected_.clear();
  for (auto& queue : queued_) queue.clear();
}

}  // namespace medley::shm

#include "backends/shm/tag_matcher.hpp"

#include <algorithm>
#include <cstring>
#include <medley/options.hpp>

namespace medley::shm {
namespace {

LongMessage about(const Cell& cell) {
  LongMessage message;
  std::memcpy(&message, cell.data, sizeof message);
  return message;
}

}  // namespace

TagMatcher::TagMatcher(const SegmentView& view, int rank, const HostPeers& host_peers, const std::vector<int>& members,
                       bool direct_reads)
    : view_(view),
      rank_(rank),
      host_peers_(host_peers),
      members_(members),
      direct_reads_(direct_reads),
      eager_most_(std::min(Pipe(view, rank, rank).payload_limit(), eager_limit)),
      queued_(members.size()) {
  for (int r = 0; r < static_cast<int>(members.size()); ++r) {
    outgoing_.emplace_back(view_, rank_, r);
    incoming_.emplace_back(view_, r, rank_);
  }
}

Unexpected::Unexpected(int sender, const Cell& cell)
    : from(sender), tag(cell.tag), eager(cell.kind == FrameKind::eager), length(cell.payload) {
  if (!eager) rts = about(cell);
  if (length > small.size()) large = std::make_unique_for_overwrite<std::byte[]>(length);
}

Transfer* TagMatcher::start(const Call& call) { return call.op == Op::send ? start_send(call) : start_recv(call); }

Transfer* TagMatcher::start_send(const Call& call) {
  const auto to = static_cast<std::size_t>(call.root);
  if (!queued_[to].empty()) [[unlikely]]
    send_queued(call.root);
  if (send_now(call.root, call.tag, call.in, static_cast<std::size_t>(call.in_count) * size_of(call.dtype)))
    return nullptr;
  auto* send = new SendTransfer(*this, call);
  sends_.push_back(*send);
  queued_[to].push_back(send);
  send->poll();
  return send;
}

/// A sender that issues thousands before it waits keeps the pipe filled.
void TagMatcher::send_queued(int to) {
  auto& queue = queued_[static_cast<std::size_t>(to)];
  for (std::size_t left = queue.size(); left > 0; left = queue.size()) {
    queue.front()->poll();
    if (queue.size() == left) return;  // no space yet
  }
}

Transfer* TagMatcher::start_recv(const Call& call) {
  RecvTransfer& recv = new_recv();
  recv.begin(call);
  if (!unexpected_.empty() && take_unexpected(recv)) return &recv;
  // Its message may be there, and is then received in place. Not where others wait already, as in a window of receives:
  // each look would fetch the line of a cell that the peer is about to write. The next poll looks.
  const bool alone = posted_.empty();
  posted_.push_back(recv);
  if (alone && call.root >= 0) take_in(call.root);
  return &recv;
}

bool TagMatcher::take_unexpected(RecvTransfer& recv) {
  const auto found = std::find_if(unexpected_.begin(), unexpected_.end(),
                                  [&](const Unexpected& message) { return recv.matches(message.from, message.tag); });
  if (found == unexpected_.end()) return false;
  const std::unique_ptr<Unexpected> message(&*found);
  unexpected_.erase(*message);
  if (!message->eager) {
    recv.take_rts(message->from, message->rts);
    return true;
  }
  if (std::byte* const to = recv.take_eager(message->from, message->length))
    std::memcpy(to, message->bytes(), message->length);
  return true;
}

void TagMatcher::progress() {
  if (idle()) return;
  for (int r = 0; r < static_cast<int>(incoming_.size()); ++r) take_in(r);
}

void TagMatcher::take_in(int from) {
  Pipe& pipe = incoming_[static_cast<std::size_t>(from)];
  const Cell* cell = pipe.front();
  if (!cell) return;
  pipe.prefetch_next();
  // Once nothing is pending, the rest stays in the pipe: its receive copies it from there once.
  for (; cell && !idle(); cell = pipe.front()) {
    if (!take_eager(from, *cell, pipe)) arrived(from, *cell, pipe);
  }
  pipe.publish_reads();
  wake(from);  // there is space in the pipe again
}

/// The usual arrival: a message of one cell for a receive that is posted.
[[gnu::always_inline]] inline bool TagMatcher::take_eager(int from, const Cell& cell, Pipe& pipe) {
  if (cell.kind != FrameKind::eager || cell.payload > cell_bytes) return false;
  RecvTransfer* const recv = match(from, cell.tag);
  if (!recv || cell.payload > recv->capacity_) [[unlikely]]
    return false;
  posted_.erase(*recv);
  copy_few(recv->take_eager(from, cell.payload), cell.data, cell.payload);
  pipe.pop_cell();
  return true;
}

/// The first posted receive that takes it. Most programs post them in the order of the messages.
[[gnu::always_inline]] inline RecvTransfer* TagMatcher::match(int from, int tag) {
  RecvTransfer* recv = posted_.front();
  while (recv && !recv->matches(from, tag)) recv = RecvList::next(*recv);
  return recv;
}

void TagMatcher::arrived(int from, const Cell& cell, Pipe& pipe) {
  if (cell.kind == FrameKind::eager || cell.kind == FrameKind::rts) return message_arrived(from, cell, pipe);
  if (cell.kind == FrameKind::data) return part_arrived(from, cell, pipe);
  if (SendTransfer* send = find_send(about(cell).id)) {
    send->state_ = cell.kind == FrameKind::fin ? SendTransfer::State::done : SendTransfer::State::cts_received;
  }
  pipe.pop(cell, nullptr);
}

void TagMatcher::message_arrived(int from, const Cell& cell, Pipe& pipe) {
  RecvTransfer* const found = match(from, cell.tag);
  if (!found) {
    auto* message = new Unexpected(from, cell);
    unexpected_.push_back(*message);
    return pipe.pop(cell, message->bytes());
  }
  RecvTransfer& recv = *found;
  posted_.erase(recv);
  if (cell.kind == FrameKind::eager) return pipe.pop(cell, recv.take_eager(from, cell.payload));
  recv.take_rts(from, about(cell));
  pipe.pop(cell, nullptr);
}

void TagMatcher::part_arrived(int from, const Cell& cell, Pipe& pipe) {
  const LongMessage part = about(cell);
  const auto match = std::find_if(reading_.begin(), reading_.end(), [&](RecvTransfer& reading) {
    return reading.from_ == from && reading.rts_.id == part.id;
  });
  if (match == reading_.end()) return pipe.pop(cell, nullptr);
  RecvTransfer& recv = *match;
  recv.done_ += cell.payload;
  pipe.pop(cell, recv.too_long_ ? nullptr : recv.data_ + part.where);
  if (recv.done_ == recv.rts_.bytes) {
    recv.state_ = RecvTransfer::State::done;
    reading_.erase(recv);
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
  if (!outgoing_[static_cast<std::size_t>(to)].write(kind, 0, {id, 0, 0})) return false;
  wake(to);
  return true;
}

TagMatcher::~TagMatcher() {
  stop();
  while (spare_) delete std::exchange(spare_, spare_->links_.next);
}

void TagMatcher::stop() noexcept {
  sends_.clear();
  posted_.clear();
  reading_.clear();
  while (Unexpected* message = unexpected_.front()) {
    unexpected_.erase(*message);
    delete message;
  }
  for (auto& queue : queued_) queue.clear();
}

}  // namespace medley::shm

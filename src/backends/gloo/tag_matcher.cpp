// Tag matching: which message goes into which receive.
#include "backends/gloo/tag_matcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <medley/sdk/peer_abort.hpp>
#include <medley/sdk/transfer_ref.hpp>

#include "backends/gloo/message_transfers.hpp"
#include "backends/gloo/no_pipe_signal.hpp"

namespace medley::gloo_backend {
namespace {

// A question and its answer wake two threads on each side, and all ranks ask all others: a rank that asks must have
// waited for long. Asked at every check instead, 16 ranks switched context 369,000 times a second, and steps over other
// libraries took three times as long.
constexpr std::chrono::milliseconds first_question_after(50), longest_question_interval(200);

std::span<const std::byte> bytes_in(const Call& call, std::size_t bytes) {
  return {static_cast<const std::byte*>(call.in), bytes};
}

Error too_long(const Header& header, int source, std::size_t room) {
  return Error(ErrorKind::mismatch,
               fmt::format("rank {} sent {} bytes with tag {} but the receive has room for {}", source, header.bytes,
                           header.tag, room),
               {.ranks = {source}});
}

}  // namespace

Transfer* TagMatcher::start(const Call& call) {
  throw_if_failed();
  return call.op == Op::send ? start_send(call) : start_receive(call);
}

Transfer* TagMatcher::start_send(const Call& call) {
  if (call.root == rank_) {
    send_to_self(call);
    return nullptr;
  }
  Peer& peer = *peers_[static_cast<std::size_t>(call.root)];
  {
    const std::lock_guard lock(mutex_);
    if (peer.left || peer.lost) throw peer_left(peer.rank);
  }
  const NoPipeSignal quiet;
  const std::size_t bytes = Message::bytes_of(call);
  const Header header{.kind = Kind::message, .tag = call.tag, .bytes = bytes};
  try {
    if (bytes <= payload_bytes) {
      post(peer, header, bytes_in(call, bytes));
      return nullptr;
    }
    TransferRef<Send> send(new Send(*this, call));
    send->buffer = mesh_->createUnboundBuffer(const_cast<void*>(call.in), bytes);
    {
      const std::lock_guard lock(mutex_);
      send->number = ++peer.numbers;
      peer.sends.emplace(send->number, send.get());
    }
    Header announced = header;
    announced.number = send->number;
    send->buffer->send(peer.rank, slot_of(send->number), 0, bytes);
    post(peer, announced);
    return send.release();
  } catch (const std::exception& error) {
    throw explain(error.what());
  }
}

void TagMatcher::send_to_self(const Call& call) {
  const std::size_t bytes = Message::bytes_of(call);
  const Header header{.kind = Kind::message, .tag = call.tag, .bytes = bytes};
  const auto data = bytes_in(call, bytes);
  const std::lock_guard lock(mutex_);
  if (Receive* receive = take_posted(rank_, call.tag)) {
    deliver(*receive, rank_, header, data);
  } else {
    unexpected_.push_back({rank_, header, Memory8(data.begin(), data.end())});
  }
}

Transfer* TagMatcher::start_receive(const Call& call) {
  auto receive = std::make_unique<Receive>(*this, call);
  const NoPipeSignal quiet;
  const std::lock_guard lock(mutex_);
  const auto arrived = std::find_if(unexpected_.begin(), unexpected_.end(), [&](const Arrival& a) {
    return a.header.tag == call.tag && (call.root == -1 || call.root == a.source);
  });
  if (arrived == unexpected_.end()) {
    posted_.push_back(receive.get());
  } else {
    deliver(*receive, arrived->source, arrived->header, arrived->data);
    unexpected_.erase(arrived);
  }
  return receive.release();
}

TagMatcher::Receive* TagMatcher::take_posted(int source, int tag) {
  const auto match = std::find_if(posted_.begin(), posted_.end(), [&](const Receive* receive) {
    return receive->tag == tag && (receive->peer == -1 || receive->peer == source);
  });
  if (match == posted_.end()) return nullptr;
  Receive* receive = *match;
  posted_.erase(match);
  return receive;
}

void TagMatcher::deliver(Receive& receive, int source, const Header& header, std::span<const std::byte> data) {
  receive.from = source;
  receive.arrived = static_cast<std::int64_t>(header.bytes);
  if (header.bytes > receive.bytes) receive.error = too_long(header, source, receive.bytes);
  if (data.size() < header.bytes) return accept_rest(receive, *peers_[static_cast<std::size_t>(source)], header);
  if (!receive.error && header.bytes > 0) std::memcpy(receive.memory, data.data(), header.bytes);
  receive.finish();
}

/// A large message: its sender has announced it, and it arrives as soon as there is a buffer for it. One that does not
/// fit is still received, so that its sender completes.
void TagMatcher::accept_rest(Receive& receive, Peer& peer, const Header& header) {
  Peer::Rest rest{&receive, header.number, nullptr, {}};
  if (receive.error) rest.spare.resize(header.bytes);
  receive.peer = peer.rank;  // awaited from now on, also by a receive from any source
  try {
    rest.buffer = mesh_->createUnboundBuffer(receive.error ? rest.spare.data() : receive.memory, header.bytes);
    rest.buffer->recv(peer.rank, slot_of(header.number), 0, header.bytes);
  } catch (const std::exception& error) {
    receive.error = Error(ErrorKind::rank_lost, fmt::format("rank {} was lost: {}", peer.rank, error.what()),
                          {.ranks = {peer.rank}});
    return receive.finish();
  }
  peer.rests.push_back(std::move(rest));
  wake(peer);
}

void TagMatcher::forget(Receive& receive) noexcept {
  const std::lock_guard lock(mutex_);
  // Receives are mostly matched in posted order, so it is near the front.
  if (const auto at = std::find(posted_.begin(), posted_.end(), &receive); at != posted_.end()) posted_.erase(at);
  for (auto& peer : peers_) {
    if (!peer) continue;
    for (Peer::Rest& rest : peer->rests) {
      if (rest.receive == &receive) rest.receive = nullptr;
    }
  }
}

void TagMatcher::forget(Send& send) noexcept {
  const std::lock_guard lock(mutex_);
  peers_[static_cast<std::size_t>(send.peer)]->sends.erase(send.number);
}

void TagMatcher::begin_collective(const Doing& doing) {
  const std::lock_guard lock(mutex_);
  doing_ = doing;
  in_collective_ = true;
  question_interval_ = first_question_after;
  next_question_ = deadline_after(question_interval_);
}

/// Called with the mutex held.
bool TagMatcher::question_due() {
  if (!in_collective_ || std::chrono::steady_clock::now() < next_question_) return false;
  question_interval_ = std::min(2 * question_interval_, longest_question_interval);
  next_question_ = deadline_after(question_interval_);
  return true;
}

void TagMatcher::end_collective() {
  const std::lock_guard lock(mutex_);
  in_collective_ = false;  // the adapter rings the doorbell once it knows
}

std::vector<int> TagMatcher::absent(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::vector<int> ranks;
  for (const auto& peer : peers_) {
    if (peer && peer->doing.number < number) ranks.push_back(peer->rank);
  }
  return ranks;
}

bool TagMatcher::awaits(const Peer& peer) const {
  if (!peer.sends.empty() || !peer.rests.empty()) return true;
  if (in_collective_ && peer.doing.number < doing_.number) return true;
  const bool others = std::any_of(peers_.begin(), peers_.end(), [&](const auto& p) { return p && !p->left; });
  return std::any_of(posted_.begin(), posted_.end(), [&](const Receive* receive) {
    return receive->peer == peer.rank || (receive->peer == -1 && !others);
  });
}

/// Why this comm can make no more progress, if so; the root cause first.
std::optional<Error> TagMatcher::trouble() const {
  for (const auto& peer : peers_) {
    if (!peer || !peer->lost) continue;
    return Error(ErrorKind::rank_lost,
                 fmt::format("rank {} died or was cut off: its connection closed without a farewell", peer->rank),
                 {.ranks = {peer->rank}});
  }
  if (failure_) return failure_;
  for (const auto& peer : peers_) {
    if (!peer || !peer->left || !awaits(*peer)) continue;
    return peer_left(peer->rank);
  }
  for (const auto& peer : peers_) {
    if (!peer || !in_collective_ || peer->doing.number != doing_.number || peer->doing.signature == doing_.signature)
      continue;
    return Error(
        ErrorKind::mismatch,
        fmt::format("rank {} called {} where this rank called {}", peer->rank, peer->doing.words, doing_.words),
        {.ranks = {peer->rank}});
  }
  return std::nullopt;
}

}  // namespace medley::gloo_backend

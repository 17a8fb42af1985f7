// Envelopes: how they are sent, the reader thread per peer, and the handling of control messages.
#include <algorithm>
#include <medley/sdk/peer_abort.hpp>
#include <nlohmann/json.hpp>

#include "backends/gloo/message_transfers.hpp"
#include "backends/gloo/no_pipe_signal.hpp"
#include "backends/gloo/tag_matcher.hpp"

namespace medley::gloo_backend {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
std::string_view as_text(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

Error read_abort(const Header& header, std::span<const std::byte> data) {
  const auto note = nlohmann::json::parse(as_text(data), nullptr, false);
  const int by = static_cast<int>(header.number);
  if (note.is_discarded()) return peer_abort(by, header.tag, {}, {});
  return peer_abort(by, header.tag, note.value("why", ""), note.value("ranks", std::vector<int>{}));
}

}  // namespace

TagMatcher::TagMatcher(std::shared_ptr<Mesh> mesh, std::shared_ptr<Doorbell> doorbell)
    : mesh_(std::move(mesh)), doorbell_(std::move(doorbell)), rank_(mesh_->rank), size_(mesh_->size) {
  const NoPipeSignal quiet;  // the readers inherit it
  for (int r = 0; r < size_; ++r) {
    peers_.push_back(r == rank_ ? nullptr : std::make_unique<Peer>(r));
    if (r == rank_) continue;
    for (Peer::Ready& ready : peers_.back()->ready) {
      ready.buffer = mesh_->createUnboundBuffer(ready.memory.data(), envelope_bytes);
      ready.buffer->recv(r, envelope_slot);
    }
  }
  for (auto& peer : peers_) {
    if (peer) peer->reader = std::thread([this, &peer = *peer] { read(peer); });
  }
}

void TagMatcher::read(Peer& peer) noexcept {
  try {
    while (read_one(peer)) {
    }
  } catch (const std::exception&) {
    lose(peer);
  }
}

/// False when nothing more will come from this peer.
bool TagMatcher::read_one(Peer& peer) {
  Peer::Ready* ready = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (peer.lost) return false;
    if (peer.rests.empty()) ready = &peer.ready[peer.next];
  }
  if (!ready) {
    await_rest(peer);
    return true;
  }
  if (!ready->buffer->waitRecv(nullptr, no_limit)) return true;  // woken, to check for something else
  peer.taken.fetch_add(1, std::memory_order_relaxed);
  const bool more = handle(peer, ready->memory);
  {
    const std::lock_guard lock(mutex_);
    peer.next = (peer.next + 1) % envelopes_ready;
  }
  // Nothing may be sent after the last one: a socket closed with unread data drops what it has not sent.
  if (!more) return false;
  ready->buffer->recv(peer.rank, envelope_slot, 0, envelope_bytes);
  bool untold = false;
  {
    const std::lock_guard lock(peer.out_mutex);
    untold = peer.taken.load(std::memory_order_relaxed) - peer.told >= taken_told_every;
  }
  if (untold) post(peer, {.kind = Kind::taken});
  return true;
}

void TagMatcher::await_rest(Peer& peer) {
  Peer::Rest* rest = nullptr;
  {
    const std::lock_guard lock(mutex_);
    rest = &peer.rests.front();
  }
  if (!rest->buffer->waitRecv(nullptr, no_limit)) return;  // the peer was lost
  // Acknowledged before the receive is complete: a rank whose work is done may leave, and nothing follows its goodbye.
  try_post(peer, {.kind = Kind::done, .number = rest->number});
  const std::lock_guard lock(mutex_);
  if (rest->receive) rest->receive->finish();
  peer.rests.pop_front();
}

bool TagMatcher::handle(Peer& peer, std::span<const std::byte> envelope) {
  Header header;
  std::memcpy(&header, envelope.data(), sizeof header);
  {
    const std::lock_guard lock(peer.out_mutex);
    for (; peer.forgotten < header.taken && !peer.outbox.empty(); ++peer.forgotten) peer.outbox.pop_front();
  }
  const bool whole = header.bytes <= payload_bytes;
  const auto data = envelope.subspan(sizeof header, whole ? header.bytes : 0);
  if (header.kind == Kind::message) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return true;
    if (Receive* receive = take_posted(peer.rank, header.tag)) {
      deliver(*receive, peer.rank, header, data);
    } else {
      unexpected_.push_back({peer.rank, header, Memory8(data.begin(), data.end())});
    }
    return true;
  }
  if (header.kind == Kind::where) {
    Doing doing;
    {
      const std::lock_guard lock(mutex_);
      doing = doing_;
    }
    const std::string words = doing.words.substr(0, payload_bytes);
    post(peer,
         {.kind = Kind::here,
          .tag = static_cast<std::int32_t>(doing.signature),
          .bytes = words.size(),
          .collectives = doing.number},
         as_bytes(words));
    return true;
  }
  handle_answer(peer, header, data);
  if (header.kind != Kind::leaving && header.kind != Kind::abort) return true;
  try_post(peer, {.kind = Kind::heard});
  return false;
}

void TagMatcher::handle_answer(Peer& peer, const Header& header, std::span<const std::byte> data) {
  const std::lock_guard lock(mutex_);
  switch (header.kind) {
    case Kind::done:
      if (const auto sent = peer.sends.find(header.number); sent != peer.sends.end()) {
        sent->second->finish();
        peer.sends.erase(sent);
      }
      break;
    case Kind::here:
      peer.doing = {header.collectives, static_cast<std::uint32_t>(header.tag), std::string(as_text(data))};
      break;
    case Kind::leaving:
      peer.left = true;
      peer.doing.number = header.collectives;
      break;
    case Kind::abort:
      peer.gave_up = true;
      if (!failure_) {
        failure_ = read_abort(header, data);
        first_note_ = as_text(data);
        first_header_ = header;
      }
      failed_ = true;
      doorbell_->ring();
      break;
    case Kind::heard: peer.heard = true; break;
    default: break;
  }
  changed_.notify_all();
}

void TagMatcher::post(Peer& peer, Header header, std::span<const std::byte> payload) {
  const std::lock_guard lock(peer.out_mutex);
  header.taken = peer.taken.load(std::memory_order_relaxed);
  peer.told = header.taken;
  Peer::Outgoing out;
  out.memory.resize(sizeof header + payload.size());
  std::memcpy(out.memory.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(out.memory.data() + sizeof header, payload.data(), payload.size());
  out.buffer = mesh_->createUnboundBuffer(out.memory.data(), out.memory.size());
  out.buffer->send(peer.rank, envelope_slot, 0, out.memory.size());
  peer.outbox.push_back(std::move(out));
}

void TagMatcher::try_post(Peer& peer, const Header& header, std::span<const std::byte> payload) noexcept {
  try {
    post(peer, header, payload);
  } catch (const std::exception&) {
    lose(peer);
  }
}

/// Makes the reader re-check what it waits for. Called with the mutex held.
void TagMatcher::wake(Peer& peer) { peer.ready[peer.next].buffer->abortWaitRecv(); }

void TagMatcher::lose(Peer& peer) noexcept {
  const std::lock_guard lock(mutex_);
  if (closing_ || peer.left || peer.gave_up) {
    peer.heard = true;  // it has what it needs
  } else {
    peer.lost = true;
    failed_ = true;
    doorbell_->ring();
  }
  wake(peer);
  for (Peer::Rest& rest : peer.rests) rest.buffer->abortWaitRecv();
  changed_.notify_all();
}

}  // namespace medley::gloo_backend

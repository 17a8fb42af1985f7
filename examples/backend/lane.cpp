#include "lane.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <medley/sdk/transfer_ref.hpp>

namespace socket_backend {

using medley::Call;
using medley::Error;
using medley::ErrorKind;
using medley::Poll;
using medley::TransferRef;

namespace {

std::int64_t bytes_of(const Call& call, std::int64_t count) {
  return count * static_cast<std::int64_t>(medley::size_of(call.dtype));
}

Error lost(int rank) {
  return Error(ErrorKind::rank_lost, "rank " + std::to_string(rank) + " closed its connection", {.ranks = {rank}});
}

}  // namespace

SendTransfer::SendTransfer(SocketLane& lane, const Call& call)
    : lane_(lane),
      to_(call.root),
      header_{bytes_of(call, call.in_count), call.tag, 0},
      data_(static_cast<const std::byte*>(call.in)) {}

Poll SendTransfer::poll() { return done_ ? Poll::complete : Poll::waiting; }

void SendTransfer::release() noexcept {
  std::erase(lane_.peers_[static_cast<std::size_t>(to_)].leaving, this);
  delete this;
}

RecvTransfer::RecvTransfer(SocketLane& lane, const Call& call)
    : lane_(lane),
      from_(call.root),
      tag_(call.tag),
      data_(static_cast<std::byte*>(call.out)),
      capacity_(bytes_of(call, call.out_count)) {}

Poll RecvTransfer::poll() {
  if (!done_) {
    return std::exchange(lane_.moved_, false) ? Poll::moved : Poll::waiting;
  }
  if (too_long_ > 0) {
    throw Error(ErrorKind::mismatch,
                "rank " + std::to_string(from_) + " sent " + std::to_string(too_long_) + " bytes with tag " +
                    std::to_string(tag_) + " but the receive has room for " + std::to_string(capacity_),
                {.ranks = {from_}});
  }
  return Poll::complete;
}

void RecvTransfer::release() noexcept {
  lane_.posted_.remove(this);
  for (auto& peer : lane_.peers_) {
    if (peer.into == this) peer.into = nullptr;  // the rest of the message is read and discarded
  }
  delete this;
}

SocketLane::SocketLane(const medley::CommParams& params)
    : rank_(params.rank), peers_(static_cast<std::size_t>(params.size)), discard_(64 * 1024) {
  std::vector<Socket> streams = connect_all(params);
  for (std::size_t r = 0; r < streams.size(); ++r) peers_[r].stream = std::move(streams[r]);
}

/// Only here, not in poll(): a peer that aborted the comm also closes its connection, and the engine allows
/// time for the reason to arrive before it treats a closed connection as a lost rank.
void SocketLane::check() {
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Peer& peer = peers_[r];
    const bool sends = !peer.leaving.empty() && (peer.gone || peer.deaf);
    const bool receives =
        peer.gone && (peer.into || std::any_of(posted_.begin(), posted_.end(), [r](const RecvTransfer* recv) {
                        return recv->from_ == static_cast<int>(r);
                      }));
    if (sends || receives) throw lost(static_cast<int>(r));
  }
}

medley::Transfer* SocketLane::start(const Call& call) {
  if (call.op == medley::Op::send) {
    TransferRef<SendTransfer> send(new SendTransfer(*this, call));
    if (call.root == rank_) {
      to_self(*send);
    } else {
      Peer& peer = peers_[static_cast<std::size_t>(call.root)];
      peer.leaving.push_back(send.get());
      write_to(peer);
    }
    return send.release();
  }
  TransferRef<RecvTransfer> recv(new RecvTransfer(*this, call));
  const auto early = std::find_if(early_.begin(), early_.end(),
                                  [&](const Early& message) { return recv->matches(message.from, message.tag); });
  if (early == early_.end()) {
    posted_.push_back(recv.get());
    return recv.release();
  }
  hand_over(*early, *recv);
  early_.erase(early);
  return recv.release();
}

/// An unexpected message, whole or still arriving, goes to a receive.
void SocketLane::hand_over(Early& early, RecvTransfer& recv) {
  recv.from_ = early.from;
  const auto bytes = static_cast<std::int64_t>(early.data.size());
  recv.arrived_ = bytes;
  if (bytes > recv.capacity_) recv.too_long_ = bytes;
  recv.done_ = early.whole || recv.too_long_ > 0;
  Peer& peer = peers_[static_cast<std::size_t>(early.from)];
  std::size_t arrived = early.data.size();
  if (!early.whole) {
    arrived = peer.read - sizeof(Header);
    peer.early = nullptr;
    peer.into = recv.too_long_ > 0 ? nullptr : &recv;
  }
  if (recv.too_long_ == 0 && arrived > 0) std::memcpy(recv.data_, early.data.data(), arrived);
}

void SocketLane::to_self(SendTransfer& send) {
  const auto bytes = static_cast<std::size_t>(send.header_.bytes);
  Early message{rank_, send.header_.tag, {send.data_, send.data_ + bytes}, true};
  send.done_ = true;
  const auto match = std::find_if(posted_.begin(), posted_.end(),
                                  [&](RecvTransfer* recv) { return recv->matches(rank_, message.tag); });
  if (match == posted_.end()) return early_.push_back(std::move(message));
  hand_over(message, **match);
  posted_.erase(match);
}

void SocketLane::progress() {
  for (int r = 0; r < static_cast<int>(peers_.size()); ++r) {
    Peer& peer = peers_[static_cast<std::size_t>(r)];
    if (!peer.stream || peer.gone) continue;
    write_to(peer);
    read_from(r);
  }
}

void SocketLane::write_to(Peer& peer) {
  while (!peer.leaving.empty() && !peer.deaf) {
    SendTransfer& send = *peer.leaving.front();
    const std::size_t data_at = send.sent_ < sizeof(Header) ? 0 : send.sent_ - sizeof(Header);
    iovec parts[] = {
        {reinterpret_cast<std::byte*>(&send.header_) + std::min(send.sent_, sizeof(Header)),
         sizeof(Header) - std::min(send.sent_, sizeof(Header))},
        {const_cast<std::byte*>(send.data_) + data_at, static_cast<std::size_t>(send.header_.bytes) - data_at}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t now = sendmsg(peer.stream.fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0) {
      if (errno != EAGAIN && errno != EINTR) peer.deaf = true;  // data it sent before is still read
      return;
    }
    moved_ = true;
    send.sent_ += static_cast<std::size_t>(now);
    if (send.sent_ < sizeof(Header) + static_cast<std::size_t>(send.header_.bytes)) return;
    send.done_ = true;
    peer.leaving.pop_front();
  }
}

/// A message's header has arrived: its data go to the first matching receive, or into a buffer of unexpected
/// messages.
void SocketLane::choose_place(int rank, Peer& peer) {
  const auto match = std::find_if(posted_.begin(), posted_.end(),
                                  [&](RecvTransfer* recv) { return recv->matches(rank, peer.header.tag); });
  if (match == posted_.end()) {
    early_.push_back(
        {rank, peer.header.tag, std::vector<std::byte>(static_cast<std::size_t>(peer.header.bytes)), false});
    peer.early = &early_.back();
    return;
  }
  RecvTransfer* recv = *match;
  posted_.erase(match);
  recv->from_ = rank;
  recv->arrived_ = peer.header.bytes;
  if (peer.header.bytes > recv->capacity_) {
    recv->too_long_ = peer.header.bytes;
    recv->done_ = true;
  } else {
    peer.into = recv;
  }
}

std::byte* SocketLane::place(Peer& peer, std::size_t& room) {
  if (peer.read < sizeof(Header)) {
    room = sizeof(Header) - peer.read;
    return reinterpret_cast<std::byte*>(&peer.header) + peer.read;
  }
  const std::size_t at = peer.read - sizeof(Header);
  room = static_cast<std::size_t>(peer.header.bytes) - at;
  if (peer.into) return peer.into->data_ + at;
  if (peer.early) return peer.early->data.data() + at;
  room = std::min(room, discard_.size());
  return discard_.data();
}

void SocketLane::finish_message(Peer& peer) {
  if (peer.into) peer.into->done_ = true;
  if (peer.early) peer.early->whole = true;
  peer.into = nullptr;
  peer.early = nullptr;
  peer.read = 0;
}

void SocketLane::read_from(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  // A few reads at a time: other peers and operations get their share before a large message is complete.
  for (int reads = 0; reads < 16; ++reads) {
    std::size_t room = 0;
    std::byte* to = place(peer, room);
    const ssize_t now = recv(peer.stream.fd(), to, room, MSG_DONTWAIT);
    if (now < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (now <= 0) {
      peer.gone = true;
      return;
    }
    moved_ = true;
    const bool header_was_open = peer.read < sizeof(Header);
    peer.read += static_cast<std::size_t>(now);
    if (header_was_open && peer.read == sizeof(Header)) choose_place(rank, peer);
    if (peer.read >= sizeof(Header) && peer.read == sizeof(Header) + static_cast<std::size_t>(peer.header.bytes)) {
      finish_message(peer);
    }
  }
}

void SocketLane::abort(const Error&) noexcept {
  for (Peer& peer : peers_) {
    peer.leaving.clear();
    peer.into = nullptr;
    peer.early = nullptr;
    peer.gone = true;  // no more reads, so no more writes to user memory
    if (peer.stream) shutdown(peer.stream.fd(), SHUT_RDWR);
  }
  posted_.clear();
  early_.clear();
}

}  // namespace socket_backend
